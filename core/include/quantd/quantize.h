// Quantize: ONNX QuantizeLinear 10 to 25 and oneDNN Graph Quantize.
//
//   absl::StatusOr<QuantizePlan> plan = PlanQuantize(parameters);
//   std::vector<uint8_t> y(plan->output_bytes);
//   absl::Status status = Quantize(*plan, parameters.x.bytes, executor, interrupted,
//                                  absl::MakeSpan(y), nullptr);
#ifndef QUANTD_QUANTIZE_H_
#define QUANTD_QUANTIZE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "quantd/executor.h"
#include "quantd/plan.h"
#include "quantd/quantization_error.h"

namespace quantd {

// Checks everything about the request except the elements of x. Returns INVALID_ARGUMENT with a
// field ("x", "scale", "zero_point", "output_type", "axis", "block_size", "block_shape",
// "precision", ...) for an invalid request. Memory: a few floats per scale, and never more scales
// than were given.
absl::StatusOr<QuantizePlan> PlanQuantize(const QuantizeParameters& parameters);

// Writes the plan's output_bytes to y. Its only error is CANCELLED: `interrupted` returned true.
// `error` may be null; it is set if the plan has report_error. REQUIRES: x is the plan's x;
// x.size() == plan.input_bytes, y.size() == plan.output_bytes; y overlaps no input.
absl::Status Quantize(const QuantizePlan& plan, absl::Span<const uint8_t> x,
                      const Executor& executor, Interrupted interrupted, absl::Span<uint8_t> y,
                      QuantizationError* error);

// Like Quantize, but only for elements [begin, end), and without an error report. `x` is all of x,
// of which only these elements are read.
// REQUIRES: begin is a multiple of 64, begin <= end <= plan.elements, y has the size of those
// elements.
absl::Status QuantizeElements(const QuantizePlan& plan, absl::Span<const uint8_t> x, int64_t begin,
                              int64_t end, const Executor& executor, Interrupted interrupted,
                              absl::Span<uint8_t> y);

}  // namespace quantd

#endif  // QUANTD_QUANTIZE_H_
