// An array that is not initialised, for values that are written right away: with a scale every 32
// elements, there are many scales.
//
//   Scratch<float, 16> scales(count);   // allocates only if count > 16
#ifndef QUANTD_SRC_TYPES_SCRATCH_H_
#define QUANTD_SRC_TYPES_SCRATCH_H_

#include <cstddef>
#include <memory>

namespace quantd {

template <typename Value, size_t kFew>
class Scratch {
 public:
  explicit Scratch(size_t size)
      : many_(size > kFew ? std::make_unique_for_overwrite<Value[]>(size) : nullptr),
        data_(many_ != nullptr ? many_.get() : few_) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  Value* data() { return data_; }
  const Value* data() const { return data_; }

 private:
  Value few_[kFew];
  std::unique_ptr<Value[]> many_;
  Value* data_;
};

}  // namespace quantd

#endif  // QUANTD_SRC_TYPES_SCRATCH_H_
