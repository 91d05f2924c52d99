// Neighbouring elements of a tensor as floats, wherever they lie.
#ifndef QUANTD_SRC_CALIBRATE_FLOAT_READER_H_
#define QUANTD_SRC_CALIBRATE_FLOAT_READER_H_

#include <cstddef>
#include <cstdint>

#include "kernels/find_kernel.h"
#include "quantd/parameters.h"

namespace quantd::calibrate {

class FloatReader {
 public:
  explicit FloatReader(const TensorView& x)
      : bytes_(x.bytes),
        to_float_(ToFloat(Kernels(), x.data_type)),
        width_(static_cast<size_t>(Info(x.data_type).bits) / 8) {}

  // `size` floats, where they are if they can be used there, else in `buffer`, which has 8 bytes
  // an element.
  const uint8_t* Read(int64_t begin, int64_t size, uint8_t* buffer) const {
    const size_t offset = static_cast<size_t>(begin) * width_;
    const size_t bytes = static_cast<size_t>(size) * width_;
    const uint8_t* from = nullptr;
    if (bytes_.chunk_count() == 1) {
      from = bytes_.chunk(0).data() + offset;
    } else {
      uint8_t* const gathered = buffer + static_cast<size_t>(size) * sizeof(float);
      bytes_.CopyTo(offset, {gathered, bytes});
      from = gathered;
    }
    if (to_float_ == nullptr) return from;
    to_float_(from, static_cast<size_t>(size), buffer);
    return buffer;
  }

 private:
  const ByteChunks& bytes_;
  const ConvertTile to_float_;
  const size_t width_;
};

}  // namespace quantd::calibrate

#endif  // QUANTD_SRC_CALIBRATE_FLOAT_READER_H_
