// Runs a computation: without the GIL if it is long, until its deadline or a signal.
#ifndef QUANTD_PYTHON_CORE_RUN_H_
#define QUANTD_PYTHON_CORE_RUN_H_

#include <cstdint>
#include <limits>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "numpy_api.h"
#include "quantd/executor.h"

namespace quantd::python {

// The size of work that does not depend on the length of an array.
inline constexpr uint64_t kLong = std::numeric_limits<uint64_t>::max();

// Calls work, which processes this many bytes. Returns DEADLINE_EXCEEDED if `timeout` seconds
// (None: no limit) pass before the end; throws exceptions of signal handlers, such as
// KeyboardInterrupt. Called with the GIL.
absl::Status Run(uint64_t bytes, nb::handle timeout,
                 absl::FunctionRef<absl::Status(Interrupted)> work);

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_RUN_H_
