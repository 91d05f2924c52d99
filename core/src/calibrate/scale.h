// From a range to its scale and zero point.
#ifndef QUANTD_SRC_CALIBRATE_SCALE_H_
#define QUANTD_SRC_CALIBRATE_SCALE_H_

#include <cstdint>

#include "quantd/data_type.h"

namespace quantd::calibrate {

struct Range {
  float low = 0;
  float high = 0;
};

struct Scale {
  float scale = 1;
  int32_t zero_point = 0;
};

// Of one output type. Integers as onnxruntime.quantization.quant_utils.compute_scale_zp; FLOAT8,
// FLOAT6 and FLOAT4 by their largest number.
class Scaling {
 public:
  Scaling(DataType output_type, bool symmetric);

  bool symmetric() const { return symmetric_; }
  // Integers: the bounds of codes. [-127, 127] of INT8 and [-32767, 32767] of INT16 when symmetric.
  int32_t minimum() const { return minimum_; }
  int32_t maximum() const { return maximum_; }
  int bits() const { return bits_; }
  // A range that is narrower than 2^-126 a step has scale 1 and zero point 0.
  Scale Of(const Range& range) const;

 private:
  bool symmetric_;
  bool integer_;
  int bits_;
  int32_t minimum_ = 0;
  int32_t maximum_ = 0;
  double largest_ = 0;  // FLOAT8, FLOAT6 and FLOAT4
};

}  // namespace quantd::calibrate

#endif  // QUANTD_SRC_CALIBRATE_SCALE_H_
