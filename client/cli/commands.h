// The commands of quantctl. Each reads its flags, prints its result to stdout, and returns what
// went wrong: a status of ServerError (server.h), or any other for the command line and files.
#ifndef QUANTD_CLI_COMMANDS_H_
#define QUANTD_CLI_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor_file.h"

namespace quantd::cli {

absl::Status RunQuantize(const std::string& input);
absl::Status RunDequantize(const std::string& input);
absl::Status RunInspect(const std::string& input);
absl::Status RunInfo();
absl::Status RunHealth();

// Whether --tensor names it (or names none).
bool IsChosen(const std::string& tensor_name);
// INVALID_ARGUMENT when --tensor names something that the file does not have.
absl::Status CheckChoice(const TensorFile& file);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_H_
