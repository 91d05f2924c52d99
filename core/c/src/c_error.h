// The result of a call of the C interface: a code, and the caller's quantd_error.
#ifndef QUANTD_CORE_C_C_ERROR_H_
#define QUANTD_CORE_C_C_ERROR_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "quantd/core.h"

namespace quantd::c {

// Calls `body`, which may throw. Returns the code, and writes it, the field and the message to
// `error` unless that is null. An invalid `error` is itself an error.
int32_t CatchExceptions(quantd_error* error, absl::FunctionRef<absl::Status()> body) noexcept;

}  // namespace quantd::c

#endif  // QUANTD_CORE_C_C_ERROR_H_
