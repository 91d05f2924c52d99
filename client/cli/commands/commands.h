// The commands of quantctl. Each prints its result to stdout, and returns what went wrong: a status
// of OperationError (engine/errors.h), or any other for the command line and files.
#ifndef QUANTD_CLI_COMMANDS_COMMANDS_H_
#define QUANTD_CLI_COMMANDS_COMMANDS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "checkpoints/choice.h"
#include "commands/options.h"
#include "commands/report.h"
#include "engine/engine.h"
#include "engine/stored_set.h"
#include "files/file_names.h"
#include "files/output.h"
#include "quantd/client/options.h"

namespace quantd::cli {

absl::Status RunQuantize(const Options& options);
absl::Status RunDequantize(const Options& options);
absl::Status RunConvert(const Options& options);
absl::Status RunCalibrate(const Options& options);
absl::Status RunEmbeddings(const Options& options);
absl::Status RunParameters(const Options& options);
absl::Status RunInspect(const Options& options);
absl::Status RunInfo(const Options& options);
absl::Status RunHealth(const Options& options);
absl::Status RunVerify(const Options& options);

// What several commands share.

// The server of --address, else the one whose environment this is, else the default.
absl::StatusOr<std::string> AddressOf(const Options& options);

// How the flags say that a server is spoken to.
client::ClientOptions ClientOptionsOf(const Options& options, absl::Duration timeout);

// The engine that the flags choose.
absl::StatusOr<std::unique_ptr<Engine>> EngineOf(const Options& options);
// The stored set of --parameters. INVALID_ARGUMENT without --address, or beside `others`: whether
// flags say what a set says.
absl::StatusOr<StoredSet> StoredSetOf(const Options& options, bool others);

// What the files and states of a calibration come to.
absl::StatusOr<Calibrated> RunCalibration(const Options& options, const CalibrationOptions& what,
                                          Engine& engine);

// --only and --skip.
using checkpoints::Choice;
absl::StatusOr<Choice> ChoiceOf(const Options& options);

// Before any work: OK when `outputs` and the files that other flags write are distinct, none is
// read (named by a flag, or in `inputs`), and all of them may be written. Else the error names the
// flags.
absl::Status CheckFiles(const Options& options, std::vector<NamedFile> outputs,
                        std::vector<NamedFile> inputs = {});
// Files that --output writes.
std::vector<NamedFile> OutputsOf(const std::vector<std::string>& paths);
// CheckFiles, then creates the output's files.
absl::Status Begin(const Options& options, std::vector<NamedFile> inputs, Output* output);
// Fills in --report, puts all files in their places, and prints the document, or `text`.
absl::Status Finish(const Options& options, Output* output, const Json& document,
                    const std::string& text);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_COMMANDS_H_
