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

// The most bytes that it uses on this number of threads, in addition to x and the outputs.
uint64_t ScratchBytes(const DynamicQuantizePlan& plan, int threads);

}  // namespace quantd

#endif  // QUANTD_DYNAMIC_QUANTIZE_H_
