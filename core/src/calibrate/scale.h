// Computes the scale and zero point of a range.
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

// For one output type. Integers: like onnxruntime.quantization.quant_utils.compute_scale_zp;
// FLOAT8, FLOAT6 and FLOAT4: from their largest number.
class Scaling {
 public:
  Scaling(DataType output_type, bool symmetric);

  bool symmetric() const { return symmetric_; }
  // Integers: the bounds of codes. Symmetric INT8: [-127, 127], INT16: [-32767, 32767].
  int32_t minimum() const { return minimum_; }
  int32_t maximum() const { return maximum_; }
  int bits() const { return bits_; }
  // A range with steps smaller than 2^-126 gets scale 1 and zero point 0.
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
