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

// Like PlanQuantize; additional fields: "scale_type", "symmetry".
absl::StatusOr<DynamicQuantizePlan> PlanDynamicQuantize(
    const DynamicQuantizeParameters& parameters);

// The outputs: packed bytes, exactly as many as the plan says.
struct DynamicQuantizeOutput {
  absl::Span<uint8_t> y;             // output_bytes
  absl::Span<uint8_t> scale;         // scale_bytes
  absl::Span<uint8_t> zero_point;    // zero_point_bytes
  absl::Span<uint8_t> tensor_scale;  // 4 if has_tensor_scale, else 0
};

// INVALID_ARGUMENT (field "x"): x contains NaN or an infinity and the plan rejects them (names the
// first index), or a scale underflows to 0 or overflows (names the scale's index). CANCELLED:
// `interrupted` returned true.
absl::Status DynamicQuantize(const DynamicQuantizePlan& plan, absl::Span<const uint8_t> x,
                             const Executor& executor, Interrupted interrupted,
                             const DynamicQuantizeOutput& output, QuantizationError* error);

// The range of the first elements of an x whose other elements have not arrived yet.
struct RangeSoFar {
  int64_t elements = 0;
  float minimum = 0;
  float maximum = 0;
  bool finite = true;  // false: one of them is NaN or infinite, and the range is invalid
};

// Widens the range by the elements of x after range.elements, up to `end`. REQUIRES:
// DynamicQuantize accepts `type`; range.elements <= end; x has the bytes of `end` elements.
void WidenRange(DataType type, absl::Span<const uint8_t> x, int64_t end, RangeSoFar& range);

// The first pass of DynamicQuantize: writes all of `output` except y, and returns a plan that makes
// y, at once or in parts (quantize.h), with the same result but without an error report. That plan
// views `output`. `known`: the range found so far. Returns the errors of DynamicQuantize. REQUIRES:
// plan.layout.scale_count == 1, !plan.has_tensor_scale.
absl::StatusOr<QuantizePlan> FindScale(const DynamicQuantizePlan& plan, absl::Span<const uint8_t> x,
                                       const RangeSoFar& known, const Executor& executor,
                                       Interrupted interrupted,
                                       const DynamicQuantizeOutput& output);

// The most bytes that it uses on this number of threads, in addition to x and the outputs.
uint64_t ScratchBytes(const DynamicQuantizePlan& plan, int threads);

}  // namespace quantd

#endif  // QUANTD_DYNAMIC_QUANTIZE_H_
