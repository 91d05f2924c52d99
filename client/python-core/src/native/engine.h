// The operations: converts Python's arguments, and returns tuples of arrays. Private to quantd's
// Python code (engine.py), which converts user input to types and enum values.
#ifndef QUANTD_PYTHON_CORE_ENGINE_H_
#define QUANTD_PYTHON_CORE_ENGINE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "numpy_api.h"
#include "quantd/parameters.h"

namespace quantd::python {

// Thread-safe. Types are numbers of DataType, 0 for none; `threads` 0 means the engine's own.
class Engine {
 public:
  // convert(value, name, type) and place(out): see operand.h and result_tensor.h. fail(code,
  // message, field) makes an exception.
  Engine(nb::object convert, nb::object place, nb::object fail);

  // Returns (y, error, scale and zero_point as given, type of x)
  nb::object Quantize(nb::handle x, nb::handle scale, nb::handle zero_point, int output_type,
                      nb::handle axis, nb::handle block_size, nb::handle block_shape,
                      nb::handle saturate, int precision, bool before_rounding,
                      nb::handle report_error, nb::handle out, nb::handle timeout, int threads);
  // Returns y
  nb::object Dequantize(nb::handle x, nb::handle scale, nb::handle zero_point, int output_type,
                        nb::handle axis, nb::handle block_size, nb::handle block_shape,
                        nb::handle tensor_scale, nb::handle out, nb::handle timeout, int threads);
  // Returns (y, scale, zero_point, tensor_scale, error, type of x)
  nb::object DynamicQuantize(nb::handle x, int output_type, nb::handle axis, nb::handle block_size,
                             nb::handle block_shape, nb::handle saturate, int scale_type,
                             int symmetry, bool ignore_non_finite, nb::handle report_error,
                             nb::handle out, nb::handle timeout, int threads);
  // Returns (y, error)
  nb::object QuantizeEmbeddings(nb::handle x, nb::handle ranges, int recipe, int output_type,
                                nb::handle dimensions, nb::handle normalize, int bit_order,
                                int bit_threshold, int signed_bits, bool ignore_non_finite,
                                nb::handle report_error, nb::handle out, nb::handle timeout,
                                int threads);

 private:
  class Call;

  Granularity ReadGranularity(nb::handle axis, nb::handle block_size, nb::handle block_shape) const;
  // Throws the exception of an error status.
  void Check(const absl::Status& status) const;

  nb::object convert_;
  nb::object place_;
  nb::object fail_;
};

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_ENGINE_H_
