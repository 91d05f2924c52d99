// The memory that a call of the C interface reads and writes, and its threads.
#ifndef QUANTD_CORE_C_C_PLACES_H_
#define QUANTD_CORE_C_C_PLACES_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "quantd/executor.h"

namespace quantd::c {

struct Place {
  absl::string_view field;
  absl::Span<const uint8_t> bytes;
};

// Returns INVALID_ARGUMENT, with the output's name, if an output overlaps another place. The first
// `inputs` places are only read, and may overlap each other.
absl::Status CheckApart(absl::Span<const Place> places, size_t inputs);

// Returns INVALID_ARGUMENT if `threads` is negative.
absl::Status CheckThreads(int32_t threads);

// The pool for `threads` >= 0 threads: 0, or more than DefaultThreads(), means
// Executor::DefaultThreads().
const Executor& PoolOf(int32_t threads);

// Whether the caller's flag is set; a null flag never is.
inline bool IsSet(const int32_t* flag) {
  return flag != nullptr && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

}  // namespace quantd::c

#endif  // QUANTD_CORE_C_C_PLACES_H_
