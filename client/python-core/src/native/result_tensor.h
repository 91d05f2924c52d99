// Arrays that the core writes a result into: new ones, or the caller's.
#ifndef QUANTD_PYTHON_CORE_RESULT_TENSOR_H_
#define QUANTD_PYTHON_CORE_RESULT_TENSOR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "numpy_api.h"
#include "operand.h"
#include "quantd/executor.h"
#include "quantd/operation.h"

namespace quantd::python {

// Where the caller wants y.
//   None: in new memory.
//   An array: of y's shape and type, in it.
//   Else what place(out), a Python function, returns: an array of packed bytes, and the name of the
//   region of memory that they are.
class Output {
 public:
  Output(nb::handle out, nb::handle place);

  bool given() const { return given_; }
  bool is_packed() const { return !region_.empty(); }
  const nb::object& array() const { return array_; }
  // INVALID_ARGUMENT when y can't go there: an array that is not as y is, packed bytes that are too
  // few, memory of an argument. Of packed bytes with the server's text.
  absl::Status Check(const TensorLayout& y) const;
  absl::Status CheckOverlap(const Operand& operand, uint64_t bytes) const;

 private:
  bool given_;
  nb::object array_;
  std::string region_;
};

// A tensor of a result.
class ResultTensor {
 public:
  // Of new memory, or where the output is, if it is given. REQUIRES: its checks have passed.
  ResultTensor(DataType type, const Shape& shape, const Output* output = nullptr);

  // What the core fills: packed bytes.
  absl::Span<uint8_t> bytes() const { return bytes_; }
  // Elements out of the packed bytes, where numpy has them another way. Needs no GIL.
  void Unpack(const Executor& executor) const;
  // The array, with the result in it. Needs the GIL.
  nb::object Take();

 private:
  DataType type_;
  nb::object target_;    // that the bytes, or the elements unpacked from them, are written into
  nb::object returned_;  // when it is another: strided, or not aligned
  std::unique_ptr<uint8_t[]> packed_;
  absl::Span<uint8_t> bytes_;
};

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_RESULT_TENSOR_H_
