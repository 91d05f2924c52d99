// An argument of a call: an array as bytes for the core.
#ifndef QUANTD_PYTHON_CORE_OPERAND_H_
#define QUANTD_PYTHON_CORE_OPERAND_H_

#include <cstdint>
#include <memory>

#include "numpy_api.h"
#include "quantd/executor.h"
#include "quantd/parameters.h"

namespace quantd::python {

// The address range [begin, end) of an array's elements; both 0 if it has none.
struct Extent {
  uintptr_t begin = 0;
  uintptr_t end = 0;

  bool Overlaps(const Extent& other) const { return begin < other.end && other.begin < end; }
};
Extent ExtentOf(PyArrayObject* array);

Shape ShapeOf(PyArrayObject* array);

// Type and shape are read at once, the elements only on request: an array whose strides are 0 may
// claim more than any memory holds, and requests that a plan refuses need no copy.
class Operand {
 public:
  // `name` is that of the argument. A value that is not an array of a type of quantd is converted
  // by convert(value, name, number of fallback), a Python function.
  Operand(nb::handle value, const char* name, DataType fallback, nb::handle convert);

  const char* name() const { return name_; }
  const Extent& extent() const { return extent_; }
  DataType type() const { return type_; }
  // A view with the right size whose bytes must not be read.
  TensorView Claimed() const;
  // Gets the bytes, copied if they are strided. Requires the GIL; throws if a copy has no memory.
  void Gather();
  // Packs the elements of types that are narrower than a byte. Needs no GIL. Afterwards the bytes
  // may be read.
  void Pack(const Executor& executor);
  // A new array of the elements, or an array without other owners.
  nb::object Copy() const;
  // The complete tensor. Views this operand.
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
