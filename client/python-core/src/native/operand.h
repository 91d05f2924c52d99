// An argument of a call: an array, seen as the core's bytes.
#ifndef QUANTD_PYTHON_CORE_OPERAND_H_
#define QUANTD_PYTHON_CORE_OPERAND_H_

#include <cstdint>
#include <memory>

#include "numpy_api.h"
#include "quantd/executor.h"
#include "quantd/parameters.h"

namespace quantd::python {

// Bytes [begin, end) that an array's elements lie in; both 0 when it has none.
struct Extent {
  uintptr_t begin = 0;
  uintptr_t end = 0;

  bool Overlaps(const Extent& other) const { return begin < other.end && other.begin < end; }
};
Extent ExtentOf(PyArrayObject* array);

Shape ShapeOf(PyArrayObject* array);

// Type and shape are read at once, the elements when they are asked for: an array whose strides are
// 0 may claim more than any memory holds, and what a plan refuses needs no copy.
class Operand {
 public:
  // `name` is the argument's. What is not an array of a type that quantd has becomes one by
  // convert(value, name, number of fallback), a Python function.
  Operand(nb::handle value, const char* name, DataType fallback, nb::handle convert);

  const char* name() const { return name_; }
  const Extent& extent() const { return extent_; }
  DataType type() const { return type_; }
  // Its bytes are of the right size, and must not be read.
  TensorView Claimed() const;
  // The bytes, copied if they are strided. Call it with the GIL; a copy that has no memory throws.
  void Gather();
  // Packs the elements of types that are narrower than a byte. Needs no GIL. After it the bytes may
  // be read.
  void Pack(const Executor& executor);
  // A new array of the elements, or one that nobody else has.
  nb::object Copy() const;
  // All of it. Views this operand.
  TensorView Whole() const;

 private:
  const char* name_;
  nb::object array_;
  bool is_callers_ = true;
  DataType type_;
  Shape shape_;
  int64_t elements_;
  Extent extent_;
  std::unique_ptr<uint8_t[]> packed_;
};

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_OPERAND_H_
