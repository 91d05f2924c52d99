// Reads contiguous elements of a tensor as floats.
#ifndef QUANTD_SRC_CALIBRATE_FLOAT_READER_H_
#define QUANTD_SRC_CALIBRATE_FLOAT_READER_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "kernels/find_kernel.h"
#include "quantd/parameters.h"

namespace quantd::calibrate {

class FloatReader {
 public:
  explicit FloatReader(const TensorView& x)
      : bytes_(x.bytes),
        to_float_(ToFloat(Kernels(), x.data_type)),
        width_(static_cast<size_t>(Info(x.data_type).bits) / 8) {}

  // Returns `size` floats: in place if possible, otherwise converted into `buffer`, which has 4
  // bytes per element.
  const uint8_t* Read(int64_t begin, int64_t size, uint8_t* buffer) const {
    const uint8_t* const from = bytes_.data() + static_cast<size_t>(begin) * width_;
    if (to_float_ == nullptr) return from;
    to_float_(from, static_cast<size_t>(size), buffer);
    return buffer;
  }

 private:
  const absl::Span<const uint8_t> bytes_;
  const ConvertTile to_float_;
  const size_t width_;
};

}  // namespace quantd::calibrate

#endif  // QUANTD_SRC_CALIBRATE_FLOAT_READER_H_
