// Failures of the operations in words for a person: the core's, or a server's.
#ifndef QUANTD_CLI_ENGINE_ERRORS_H_
#define QUANTD_CLI_ENGINE_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace quantd::cli {

// A server's failure: which one, what to do about it.
absl::Status ServerError(const absl::Status& status, absl::string_view address);

// What is wrong with a client's options, by the names of the flags. No server was asked, so it is
// not an operation's failure: exit code 2.
absl::Status OptionsError(const absl::Status& status);

// The failure of an operation on a tensor, such as "quantize" and "weight": what was being done,
// the code, the field. `tensor` may be empty.
absl::Status OperationError(const absl::Status& status, absl::string_view operation,
                            absl::string_view tensor);

// The same of a status whose text says it already.
absl::Status AsOperationError(const absl::Status& status);

// Whether a status came through one of them (exit code 1) or arose elsewhere (exit code 2).
bool IsOperationError(const absl::Status& status);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_ENGINE_ERRORS_H_
