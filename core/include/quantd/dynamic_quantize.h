// DynamicQuantize: ONNX DynamicQuantizeLinear 11, oneDNN Graph DynamicQuantize, OCP microscaling
// and NVFP4. Used like Quantize (quantize.h).
#ifndef QUANTD_DYNAMIC_QUANTIZE_H_
#define QUANTD_DYNAMIC_QUANTIZE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "quantd/executor.h"
#include "quantd/plan.h"
#include "quantd/quantization_error.h"

namespace quantd {

// As PlanQuantize; further fields: "scale_type", "symmetry".
absl::StatusOr<DynamicQuantizePlan> PlanDynamicQuantize(
    const DynamicQuantizeParameters& parameters);

// Where the answer goes: packed bytes, exactly as many as the plan says.
struct DynamicQuantizeOutput {
  absl::Span<uint8_t> y;             // output_bytes
  absl::Span<uint8_t> scale;         // scale_bytes
  absl::Span<uint8_t> zero_point;    // zero_point_bytes
  absl::Span<uint8_t> tensor_scale;  // 4 if has_tensor_scale, else 0
};

// INVALID_ARGUMENT (field "x") when x holds NaN or an infinity and the plan rejects them, naming
// the first index, or when a scale underflows to 0 or overflows, naming the scale's index;
// CANCELLED when `interrupted` said so.
absl::Status DynamicQuantize(const DynamicQuantizePlan& plan, absl::Span<const uint8_t> x,
                             const Executor& executor, Interrupted interrupted,
                             const DynamicQuantizeOutput& output, QuantizationError* error);

// The range of the first elements of an x whose other elements are not here yet.
struct RangeSoFar {
  int64_t elements = 0;
  float minimum = 0;
  float maximum = 0;
  bool finite = true;  // false: one of them is NaN or infinite, and the range is of no use
};

// Widens the range by the elements of x behind it, up to `end`. `type` is one that DynamicQuantize
// takes. REQUIRES: range.elements <= end, x has the bytes of `end` elements.
void WidenRange(DataType type, absl::Span<const uint8_t> x, int64_t end, RangeSoFar& range);

// DynamicQuantize up to its second pass: writes all of `output` but y, and returns the plan that
// makes y, all at once or in parts (quantize.h), with the same result but without a report. That
// plan views `output`. `known`: the range that was found already. Errors as of DynamicQuantize.
// REQUIRES: plan.layout.scale_count == 1, !plan.has_tensor_scale.
absl::StatusOr<QuantizePlan> FindScale(const DynamicQuantizePlan& plan, absl::Span<const uint8_t> x,
                                       const RangeSoFar& known, const Executor& executor,
                                       Interrupted interrupted,
                                       const DynamicQuantizeOutput& output);

// Most bytes that it takes while it runs on so many threads, beside x and the outputs.
uint64_t ScratchBytes(const DynamicQuantizePlan& plan, int threads);

}  // namespace quantd

#endif  // QUANTD_DYNAMIC_QUANTIZE_H_
