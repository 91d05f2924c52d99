// What is decided about a request before any element is touched.
//
// A plan is made once from the parameters (everything that can be wrong with them is found there),
// is immutable, and can be executed from any thread. It views the parameters' bytes: they must
// outlive it.
#ifndef QUANTD_PLAN_H_
#define QUANTD_PLAN_H_

#include <cstdint>

#include "absl/types/span.h"
#include "quantd/arithmetic.h"
#include "quantd/block_layout.h"
#include "quantd/column.h"
#include "quantd/parameters.h"

namespace quantd {

// What all plans have.
struct PlanBase {
  DataType input_type = DataType::kUnspecified;
  DataType output_type = DataType::kUnspecified;
  Shape shape;  // of x and y
  int64_t elements = 0;
  uint64_t input_bytes = 0;   // packed bytes of x; checked to be what arrived
  uint64_t output_bytes = 0;  // packed bytes of y
  // One length per dimension of `shape`, nothing merged; 1 if a dimension is empty.
  Shape block_shape;
  BlockLayout layout;  // the same blocks, merged
};

// One element for each scale of a request that brings them, packed as in a tensor of the type. Read
// when the plan is executed, for a part of the tensor at a time: a plan is as small for 2^30 of
// them as for one.
struct ScaleOperand {
  DataType type = DataType::kUnspecified;
  absl::Span<const uint8_t> bytes;  // of the request; empty: there is none, or all are 0

  bool empty() const { return bytes.empty(); }
};

// Made by PlanQuantize.
struct QuantizePlan : PlanBase {
  Quotient quotient = Quotient::kDivide;
  DataType precision = DataType::kFloat;  // of the division: FLOAT, FLOAT16 or BFLOAT16
  bool saturate = true;                   // FLOAT8 only
  ZeroPointOrder zero_point_order = ZeroPointOrder::kAfterRounding;
  bool has_zero_point = false;  // mini floats: one is added in FLOAT only when given
  bool report_error = false;
  // Smallest and largest integer that an output may have (integer types): the type's range, but
  // [-127, 127] for the INT8 of DynamicQuantize.
  int32_t minimum = 0;
  int32_t maximum = 0;
  // Checked: as FLOAT, and rounded to `precision`, they are neither 0 nor NaN nor infinite.
  ScaleOperand scales;
  // Used as FLOAT (INT32 rounds). Mini floats: there whenever has_zero_point (adding 0 turns -0
  // into +0, and a zero point may be -0 itself).
  ScaleOperand zero_points;
};

// Made by PlanDequantize.
struct DequantizePlan : PlanBase {
  ScaleOperand scales;     // as FLOAT, times tensor_scale; any value
  float tensor_scale = 1;  // multiplied in when has_tensor_scale (NaN * 1 need not be the same NaN)
  bool has_tensor_scale = false;
  // To be subtracted as float(x) - float(zero_point), but for INT32 x in 64-bit integers.
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
  bool has_zero_point = false;    // whether the answer carries y_zero_point
  uint64_t zero_point_bytes = 0;  // packed bytes of y_zero_point; 0 without one
  bool has_tensor_scale = false;  // whether the answer carries y_tensor_scale (a FLOAT, 4 bytes)
};

// Made by PlanQuantizeEmbeddings. `shape` is that of x; there are no blocks.
struct QuantizeEmbeddingsPlan : PlanBase {
  EmbeddingRecipe recipe = EmbeddingRecipe::kRanges;
  Shape output_shape;  // of y: x's, but for the last dimension, which is `row_bytes`
  int64_t output_elements = 0;
  int64_t rows = 0;        // embeddings
  int64_t width = 0;       // values that each has
  int64_t dimensions = 0;  // the first so many of these values are used
  int64_t row_bytes = 0;   // of y, which each embedding becomes
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
