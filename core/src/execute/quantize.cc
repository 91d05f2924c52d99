#include "quantd/quantize.h"

#include <vector>

#include "execute/quantize_tiles.h"

namespace quantd {

absl::Status Quantize(const QuantizePlan& plan, const ByteChunks& x, const Executor& executor,
                      Interrupted interrupted, absl::Span<uint8_t> y, QuantizationError* error) {
  const float* zero_point = plan.zero_points.empty() ? nullptr : plan.zero_points.data();
  std::vector<float> zeros;
  if (zero_point == nullptr && plan.has_zero_point && plan.output_type == DataType::kFloat4E2M1) {
    // Adding a zero turns -0 into +0.
    zeros.resize(plan.scales.size(), 0.0f);
    zero_point = zeros.data();
  }
  const QuantizeWork work{
      .input_type = plan.input_type,
      .output_type = plan.output_type,
      .elements = plan.elements,
      .input_bytes = plan.input_bytes,
      .layout = &plan.layout,
      .quotient = plan.quotient,
      .order = plan.zero_point_order,
      .scale = plan.scales.data(),
      .dequantize_scale =
          plan.dequantize_scales.empty() ? plan.scales.data() : plan.dequantize_scales.data(),
      .zero_point = zero_point,
      .minimum = plan.minimum,
      .maximum = plan.maximum,
      .saturate = plan.saturate,
      .backwards = false,
  };
  ErrorSums sums;
  const bool report = plan.report_error && error != nullptr;
  const absl::Status status =
      QuantizeTiles(work, x, executor, interrupted, y, report ? &sums : nullptr);
  if (status.ok() && report) *error = sums.Finish();
  return status;
}

}  // namespace quantd
