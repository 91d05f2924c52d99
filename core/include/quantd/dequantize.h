// Dequantize: ONNX DequantizeLinear 10 to 25 and oneDNN Graph Dequantize. Used like Quantize
// (quantize.h).
#ifndef QUANTD_DEQUANTIZE_H_
#define QUANTD_DEQUANTIZE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "quantd/executor.h"
#include "quantd/plan.h"

namespace quantd {

// Like PlanQuantize; additional fields: "tensor_scale".
absl::StatusOr<DequantizePlan> PlanDequantize(const DequantizeParameters& parameters);

// Like Quantize.
absl::Status Dequantize(const DequantizePlan& plan, absl::Span<const uint8_t> x,
                        const Executor& executor, Interrupted interrupted, absl::Span<uint8_t> y);

// Like Dequantize, but only for elements [begin, end), for a caller without room for all of y. x is
// complete. REQUIRES: begin is a multiple of 64, begin <= end <= plan.elements, y has the size of
// those elements.
absl::Status DequantizeElements(const DequantizePlan& plan, absl::Span<const uint8_t> x,
                                int64_t begin, int64_t end, const Executor& executor,
                                Interrupted interrupted, absl::Span<uint8_t> y);

}  // namespace quantd

#endif  // QUANTD_DEQUANTIZE_H_
