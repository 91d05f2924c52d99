// A column of a plan: an array of one float for each dimension of an embedding.
#ifndef QUANTD_COLUMN_H_
#define QUANTD_COLUMN_H_

#include <cstddef>
#include <memory>
#include <utility>

namespace quantd {

// Constant values made by a plan; copies share them.
class FloatColumn {
 public:
  FloatColumn() = default;
  FloatColumn(std::shared_ptr<const float[]> made, size_t size)
      : made_(std::move(made)), size_(size) {}

  const float* data() const { return made_.get(); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  float operator[](size_t index) const { return made_[static_cast<std::ptrdiff_t>(index)]; }

 private:
  std::shared_ptr<const float[]> made_;
  size_t size_ = 0;
};

}  // namespace quantd

#endif  // QUANTD_COLUMN_H_
