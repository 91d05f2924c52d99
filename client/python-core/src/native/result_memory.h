// Memory for large results. The page faults of a new array take longer than the kernel that fills
// it, so memory that no array has any more is kept for the next results: at most kMostKept bytes,
// and for a second or two. It has huge pages where the system offers them.
#ifndef QUANTD_PYTHON_CORE_RESULT_MEMORY_H_
#define QUANTD_PYTHON_CORE_RESULT_MEMORY_H_

#include <cstddef>

#include "numpy_api.h"

namespace quantd::python {

// While it exists, numpy's new arrays of this thread are in such memory if their data takes
// `bytes` >= kLarge. They own it like any other. Needs the GIL, without a break.
class ResultMemory {
 public:
  static constexpr size_t kLarge = size_t{1} << 20;
  static constexpr size_t kMostKept = size_t{256} << 20;

  explicit ResultMemory(size_t bytes);
  ~ResultMemory();
  ResultMemory(const ResultMemory&) = delete;
  ResultMemory& operator=(const ResultMemory&) = delete;

 private:
  nb::object before_;
};

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_RESULT_MEMORY_H_
