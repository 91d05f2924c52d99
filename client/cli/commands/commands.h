// The commands of quantctl. Each prints its result to stdout, and returns its error: an
// OperationError (engine/errors.h), or any other status for errors of the command line and of
// files.
#ifndef QUANTD_CLI_COMMANDS_COMMANDS_H_
#define QUANTD_CLI_COMMANDS_COMMANDS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "checkpoints/selection.h"
#include "commands/options.h"
#include "commands/report.h"
#include "commands/terminal.h"
#include "engine/engine.h"
#include "files/file_names.h"
#include "files/output.h"
#include "quantd/client/options.h"

namespace quantd::cli {

absl::Status RunQuantize(const Options& options);
absl::Status RunDequantize(const Options& options);
absl::Status RunConvert(const Options& options);
absl::Status RunCalibrate(const Options& options);
absl::Status RunEmbeddings(const Options& options);
absl::Status RunInspect(const Options& options);
absl::Status RunInfo(const Options& options);
absl::Status RunHealth(const Options& options);
absl::Status RunTop(const Options& options);

// Shared by several commands.

// The inspection of a model (inspect_model.cc): whether a path is a folder or a .gguf, and of its
// tensors.
bool IsModel(const std::string& path);
absl::Status InspectModel(const Options& options);

// The server of --address, or else the one from this environment, or else the default.
absl::StatusOr<std::string> AddressOf(const Options& options);

// The client's options from the flags.
client::ClientOptions ClientOptionsOf(const Options& options, absl::Duration timeout);

// The engine that the flags select.
absl::StatusOr<std::unique_ptr<Engine>> EngineOf(const Options& options);

// --only and --skip.
using checkpoints::Choice;
absl::StatusOr<Choice> ChoiceOf(const Options& options);

// Checks before any work: `outputs` and files written by other flags must be different, none of
// them may be an input (of a flag, or in `inputs`), and all must be writable. The error names the
// flags.
absl::Status CheckFiles(const Options& options, std::vector<NamedFile> outputs,
                        std::vector<NamedFile> inputs = {});
// The files of --output.
std::vector<NamedFile> OutputsOf(const std::vector<std::string>& paths);
// Calls CheckFiles, then creates the output's files.
absl::Status Begin(const Options& options, std::vector<NamedFile> inputs, Output* output);
// Writes --report, moves all files to their places, and prints the document, or `text`.
absl::Status Finish(const Options& options, Output* output, const Json& document,
                    const std::string& text);

// Stored tensors that are copied, with their positions in the output.
using TensorCopies = std::vector<std::pair<const StoredTensor*, size_t>>;
void CopyTensors(const TensorFile& file, const TensorCopies& copies, Output* output);

// Runs an operation on the tensor `name`, whose file was opened at that time, with `y` in memory.
// Sets the report's name, x and times. Returns an OperationError.
absl::Status Measure(Engine& engine, const char* operation, const std::string& name,
                     absl::Time opened, const TensorView& x, absl::Span<uint8_t> y,
                     absl::FunctionRef<absl::Status()> run, TensorReport* report);

// As JSON reports take some KB each, so they are made only if they are needed.
inline bool WantsJson(const Options& options) { return options.json || !options.report.empty(); }

// Runs all tasks, which have names, with a progress bar of `work` bytes. Adds the reports to the
// document's "tensors".
template <typename Tasks, typename Run>
absl::StatusOr<std::vector<TensorReport>> RunTasks(const Options& options, uint64_t work,
                                                   const Tasks& tasks, Json* document, Run run) {
  std::vector<TensorReport> reports;
  Progress progress(!options.quiet, work);
  for (const auto& task : tasks) {
    progress.SetLabel(task.name);
    absl::StatusOr<TensorReport> report = run(task);
    if (!report.ok()) return report.status();
    progress.Add(report->bytes_before);
    if (WantsJson(options)) (*document)["tensors"].push_back(ToJson(*report));
    reports.push_back(*std::move(report));
  }
  return reports;
}

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_COMMANDS_H_
