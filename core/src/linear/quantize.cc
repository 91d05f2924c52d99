#include "quantd/quantize.h"

#include "linear/quantize_tiles.h"

namespace quantd {

absl::Status Quantize(const QuantizePlan& plan, const ByteChunks& x, const Executor& executor,
                      Interrupted interrupted, absl::Span<uint8_t> y, QuantizationError* error) {
  const QuantizeWork work{
      .input_type = plan.input_type,
      .output_type = plan.output_type,
      .part = {0, plan.elements, 0, static_cast<size_t>(plan.layout.scale_count)},
      .input_bytes = plan.input_bytes,
      .layout = &plan.layout,
      .quotient = plan.quotient,
      .order = plan.zero_point_order,
      .scale = plan.scales.data(),
      .dequantize_scale =
          plan.dequantize_scales.empty() ? plan.scales.data() : plan.dequantize_scales.data(),
      .zero_point = plan.zero_points.empty() ? nullptr : plan.zero_points.data(),
      .minimum = plan.minimum,
      .maximum = plan.maximum,
      .saturate = plan.saturate,
  };
  ErrorSums sums;
  const bool report = plan.report_error && error != nullptr;
  const absl::Status status =
      QuantizeTiles(work, x, &executor, interrupted, y, report ? &sums : nullptr);
  if (status.ok() && report) *error = sums.Finish();
  return status;
}

}  // namespace quantd
