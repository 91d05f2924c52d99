// The columns that Division::kReciprocal needs with ScaleMode::kPerElement, made from the scales
// once per operation. For runs the kernels make them on the fly: a separate phase costs the same on
// one thread, and is not shared on two. (Quantize in blocks of 32, 1 MiB, two threads: 62 GB/s, 43
// with a separate phase and a copy of the scales.)
#ifndef QUANTD_SRC_LINEAR_RECIPROCALS_H_
#define QUANTD_SRC_LINEAR_RECIPROCALS_H_

#include <algorithm>
#include <cstddef>

#include "kernels/kernel_table.h"
#include "pool/tasks.h"
#include "types/scratch.h"

namespace quantd {

class Reciprocals {
 public:
  Reciprocals(const KernelTable& kernels, Workers workers, const float* scale, size_t size)
      : values_(2 * size), size_(size) {
    float* const all = values_.data();
    const size_t tasks = (size + kPerTask - 1) / kPerTask;
    ForEachTask(workers, tasks, [&](size_t task) {
      const size_t begin = task * kPerTask;
      const size_t count = std::min(kPerTask, size - begin);
      kernels.make_reciprocals(scale + begin, count, all + begin, all + size + begin);
    });
  }

  const float* reciprocal() const { return values_.data(); }
  const float* correction() const { return values_.data() + size_; }

 private:
  static constexpr size_t kPerTask = 16'384;  // some 20 us

  Scratch<float, 64> values_;
  const size_t size_;
};

}  // namespace quantd

#endif  // QUANTD_SRC_LINEAR_RECIPROCALS_H_
