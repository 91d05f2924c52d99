// How a call of the C interface ends: a code, and the caller's quantd_error.
#ifndef QUANTD_CORE_C_C_ERROR_H_
#define QUANTD_CORE_C_C_ERROR_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "quantd/core.h"

namespace quantd::c {

// Calls `body`, which may throw. Returns the code, and writes it with field and message to `error`
// unless that is null; a wrong `error` itself is an error.
int32_t CatchExceptions(quantd_error* error, absl::FunctionRef<absl::Status()> body) noexcept;

}  // namespace quantd::c

#endif  // QUANTD_CORE_C_C_ERROR_H_
