// An array for what is written right away, not filled with 0 first: a scale every 32 elements is a
// lot of scales.
//
//   Scratch<float, 16> scales(count);   // up to 16 of them without an allocation
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
