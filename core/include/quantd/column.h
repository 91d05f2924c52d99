// A column of a plan: an array of one value a scale, such as the scales themselves.
#ifndef QUANTD_COLUMN_H_
#define QUANTD_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace quantd {

// Constant values that a plan made (copies share them), or a request's own, where they lie.
template <typename Value>
class Column {
 public:
  using value_type = Value;
  using const_iterator = const Value*;

  Column() = default;
  Column(std::shared_ptr<const Value[]> made, size_t size)
      : made_(std::move(made)), data_(made_.get()), size_(size) {}
  // Those at `lent`, which must outlive it.
  Column(const Value* lent, size_t size) : data_(lent), size_(size) {}

  const Value* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Value* begin() const { return data_; }
  const Value* end() const { return data_ + size_; }
  Value operator[](size_t index) const { return data_[index]; }

 private:
  std::shared_ptr<const Value[]> made_;  // null: lent
  const Value* data_ = nullptr;
  size_t size_ = 0;
};

using FloatColumn = Column<float>;
using IntegerColumn = Column<int32_t>;

}  // namespace quantd

#endif  // QUANTD_COLUMN_H_
