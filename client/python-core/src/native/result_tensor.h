// Arrays for results of the core: new ones, or the caller's.
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

// The place of y that the caller wants.
//   None: new memory.
//   An array with y's shape and type: that array.
//   Other values: the result of place(out), a Python function: an array of packed bytes, and the
//   name of their memory region.
class Output {
 public:
  Output(nb::handle out, nb::handle place);

  bool given() const { return given_; }
  bool is_packed() const { return !region_.empty(); }
  const nb::object& array() const { return array_; }
  // Returns INVALID_ARGUMENT if y can't be written there: the array does not match y, the packed
  // bytes are too few, or it is memory of an argument. For packed bytes the text is the server's.
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
  // In new memory, or in `output` if it is given. REQUIRES: the output was checked.
  ResultTensor(DataType type, const Shape& shape, const Output* output = nullptr);

  // The packed bytes that the core writes.
  absl::Span<uint8_t> bytes() const { return bytes_; }
  // Unpacks the bytes into elements if numpy has another format. Needs no GIL.
  void Unpack(const Executor& executor) const;
  // The array with the result. Needs the GIL.
  nb::object Take();

 private:
  DataType type_;
  nb::object target_;    // receives the bytes, or the elements unpacked from them
  nb::object returned_;  // if it differs from target_: strided, or not aligned
  std::unique_ptr<uint8_t[]> packed_;
  absl::Span<uint8_t> bytes_;
};

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_RESULT_TENSOR_H_
