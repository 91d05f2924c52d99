// How a computation runs: without the GIL when it is long, until its deadline or a signal.
#ifndef QUANTD_PYTHON_CORE_RUN_H_
#define QUANTD_PYTHON_CORE_RUN_H_

#include <cstdint>
#include <limits>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "numpy_api.h"
#include "quantd/executor.h"

namespace quantd::python {

// Bytes of work whose length is not that of an array.
inline constexpr uint64_t kLong = std::numeric_limits<uint64_t>::max();

// Calls work, which goes through so many bytes. DEADLINE_EXCEEDED when `timeout` seconds (None: no
// limit) passed first; throws what a signal's handler raised, such as KeyboardInterrupt.
// Called with the GIL.
absl::Status Run(uint64_t bytes, nb::handle timeout,
                 absl::FunctionRef<absl::Status(Interrupted)> work);

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_RUN_H_
