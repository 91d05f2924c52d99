// The columns that Division::kReciprocal needs with ScaleMode::kPerElement, made from the scales
// once an operation. With runs the kernels make them, as they go: a phase of their own costs as much
// on one thread as that, and all of it again on two. (Quantize in blocks of 32, 1 MiB, two threads:
// 62 GB/s, 43 with that and a copy of the scales.)
#ifndef QUANTD_SRC_LINEAR_RECIPROCALS_H_
#define QUANTD_SRC_LINEAR_RECIPROCALS_H_

#include <algorithm>
#include <cstddef>
#include <memory>

#include "kernels/kernel_table.h"
#include "pool/tasks.h"

namespace quantd {

class Reciprocals {
 public:
  Reciprocals(const KernelTable& kernels, Workers workers, const float* scale, size_t size) {
    float* all = few_;
    if (size > kFew) {
      many_ = std::make_unique_for_overwrite<float[]>(2 * size);
      all = many_.get();
    }
    reciprocal_ = all;
    correction_ = all + size;
    const size_t tasks = (size + kPerTask - 1) / kPerTask;
    ForEachTask(workers, tasks, [&](size_t task) {
      const size_t begin = task * kPerTask;
      const size_t count = std::min(kPerTask, size - begin);
      kernels.make_reciprocals(scale + begin, count, all + begin, all + size + begin);
    });
  }

  const float* reciprocal() const { return reciprocal_; }
  const float* correction() const { return correction_; }

 private:
  static constexpr size_t kFew = 32;          // kept on the stack
  static constexpr size_t kPerTask = 16'384;  // some 20 us

  float few_[2 * kFew];
  std::unique_ptr<float[]> many_;
  const float* reciprocal_;
  const float* correction_;
};

}  // namespace quantd

#endif  // QUANTD_SRC_LINEAR_RECIPROCALS_H_
