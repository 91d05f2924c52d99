// The errors of operations, of the core or of a server, in words for a user.
#ifndef QUANTD_CLI_ENGINE_ERRORS_H_
#define QUANTD_CLI_ENGINE_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace quantd::cli {

// The error of a server: names the server, and says what to do.
absl::Status ServerError(const absl::Status& status, absl::string_view address);

// An error of the client's options, with the names of the flags. No server was asked, so it is not
// an error of an operation: exit code 2.
absl::Status OptionsError(const absl::Status& status);

// The error of an operation on a tensor, such as "quantize" and "weight": names the operation, the
// code and the field. `tensor` may be empty.
absl::Status OperationError(const absl::Status& status, absl::string_view operation,
                            absl::string_view tensor);

// Does this for a status whose text contains that already.
absl::Status AsOperationError(const absl::Status& status);

// Whether a status was made by one of these (exit code 1) or elsewhere (exit code 2).
bool IsOperationError(const absl::Status& status);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_ENGINE_ERRORS_H_
