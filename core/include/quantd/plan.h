// What is decided about a request before any element is read.
//
// A plan is made once from the parameters, and all errors of the parameters are found then. It is
// immutable, and can be executed on any thread. It views the parameters' bytes, which must outlive
// it.
#ifndef QUANTD_PLAN_H_
#define QUANTD_PLAN_H_

#include <cstdint>

#include "absl/types/span.h"
#include "quantd/arithmetic.h"
#include "quantd/block_layout.h"
#include "quantd/column.h"
#include "quantd/parameters.h"

namespace quantd {

// The common part of all plans.
struct PlanBase {
  DataType input_type = DataType::kUnspecified;
  DataType output_type = DataType::kUnspecified;
  Shape shape;  // of x and y
  int64_t elements = 0;
  uint64_t input_bytes = 0;   // packed bytes of x; checked against the given bytes
  uint64_t output_bytes = 0;  // packed bytes of y
  // One length per dimension of `shape`, without merging; 1 if a dimension is empty.
  Shape block_shape;
  BlockLayout layout;  // the same blocks, with merged dimensions
};

// The given scales (or zero points) of a request, packed as in a tensor of the type. They are read
// when the plan is executed, for a part of the tensor at a time, so a plan for 2^30 scales is as
// small as a plan for one.
struct ScaleOperand {
  DataType type = DataType::kUnspecified;
  absl::Span<const uint8_t> bytes;  // of the request; empty: none, or all are 0

  bool empty() const { return bytes.empty(); }
};

// Made by PlanQuantize.
struct QuantizePlan : PlanBase {
  Quotient quotient = Quotient::kDivide;
  DataType precision = DataType::kFloat;  // of the division: FLOAT, FLOAT16 or BFLOAT16
  bool saturate = true;                   // FLOAT8 only
  ZeroPointOrder zero_point_order = ZeroPointOrder::kAfterRounding;
  bool has_zero_point = false;  // mini floats: one is added in FLOAT only if it is given
  bool report_error = false;
  // Smallest and largest integer of an output (integer types): the type's range, but [-127, 127]
  // for the INT8 of DynamicQuantize.
  int32_t minimum = 0;
  int32_t maximum = 0;
  // Checked: as FLOAT, and rounded to `precision`, none is 0, NaN or infinite.
  ScaleOperand scales;
  // Used as FLOAT (INT32 is rounded). Mini floats: not empty if has_zero_point (adding 0 turns -0
  // into +0, and a zero point may be -0 itself).
  ScaleOperand zero_points;
};

// Made by PlanDequantize.
struct DequantizePlan : PlanBase {
  ScaleOperand scales;     // as FLOAT, times tensor_scale; any values
  float tensor_scale = 1;  // multiplied in when has_tensor_scale (NaN * 1 need not be the same NaN)
  bool has_tensor_scale = false;
  // Subtracted as float(x) - float(zero_point); for INT32 x in 64-bit integers.
  ScaleOperand zero_points;
};

// Made by PlanDynamicQuantize.
struct DynamicQuantizePlan : PlanBase {
  ScaleRule rule = ScaleRule::kRange;
  DataType scale_type = DataType::kFloat;
  bool saturate = true;
  bool report_error = false;
  NonFinite non_finite = NonFinite::kReject;
  int32_t minimum = 0;  // as in QuantizePlan
  int32_t maximum = 0;
  Shape scale_shape;              // of y_scale and y_zero_point
  uint64_t scale_bytes = 0;       // packed bytes of y_scale
  bool has_zero_point = false;    // whether the result has y_zero_point
  uint64_t zero_point_bytes = 0;  // packed bytes of y_zero_point; 0 without one
  bool has_tensor_scale = false;  // whether the result has y_tensor_scale (a FLOAT, 4 bytes)
};

// Made by PlanQuantizeEmbeddings. `shape` is that of x; there are no blocks.
struct QuantizeEmbeddingsPlan : PlanBase {
  EmbeddingRecipe recipe = EmbeddingRecipe::kRanges;
  Shape output_shape;  // of y: that of x, with `row_bytes` as the last dimension
  int64_t output_elements = 0;
  int64_t rows = 0;        // number of embeddings
  int64_t width = 0;       // values of each embedding
  int64_t dimensions = 0;  // number of leading values that are used
  int64_t row_bytes = 0;   // bytes of each embedding in y
  bool normalize = false;
  bool lsb_first = false;         // BITS
  bool greater_or_equal = false;  // BITS
  bool twos_complement = false;   // BITS to INT8
  NonFinite non_finite = NonFinite::kReject;
  bool report_error = false;
  // RANGES, one entry per dimension. Without factors (65536 / step) only a division is exact.
  FloatColumn lows;
  FloatColumn steps;
  FloatColumn factors;
};

}  // namespace quantd

#endif  // QUANTD_PLAN_H_
