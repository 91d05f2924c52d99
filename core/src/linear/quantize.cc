#include "quantd/quantize.h"

#include "kernels/read_elements.h"
#include "linear/given_scales.h"
#include "linear/quantize_tiles.h"
#include "pool/watch.h"

namespace quantd {
namespace {

enum Column : size_t { kGiven, kRounded, kZeroPoint };

}  // namespace

absl::Status Quantize(const QuantizePlan& plan, absl::Span<const uint8_t> x,
                      const Executor& executor, Interrupted interrupted, absl::Span<uint8_t> y,
                      QuantizationError* error) {
  // What one part is told is known to all that come after it.
  Watch watch(interrupted);
  const auto stopped = [&watch] { return watch.Stopped(); };
  const bool rounds = plan.precision != DataType::kFloat && plan.precision != plan.scales.type;
  const auto run = [&](const GivenPart& given, ColumnReader& reader, Workers workers,
                       ErrorSums* sums) {
    const float* scale = reader.Floats(plan.scales, given, kGiven);
    const float* const dequantize_scale = scale;
    if (rounds) {
      float* const rounded = reader.OwnFloats(plan.scales, given, kRounded);
      RoundFloats(plan.precision, rounded, given.part.scales);
      scale = rounded;
    }
    const QuantizeWork work{
        .input_type = plan.input_type,
        .output_type = plan.output_type,
        .part = given.part,
        .input_bytes = plan.input_bytes,
        .layout = given.layout,
        .quotient = plan.quotient,
        .order = plan.zero_point_order,
        .scale = scale,
        .dequantize_scale = dequantize_scale,
        .zero_point = reader.Floats(plan.zero_points, given, kZeroPoint),
        .minimum = plan.minimum,
        .maximum = plan.maximum,
        .saturate = plan.saturate,
    };
    return QuantizeTiles(work, x, workers, stopped, y, sums);
  };
  ErrorSums sums;
  const bool report = plan.report_error && error != nullptr;
  const absl::Status status =
      ForEachGivenPart(plan.layout, 0, plan.elements, &executor, report ? &sums : nullptr, run);
  if (status.ok() && report) *error = sums.Finish();
  return status;
}

}  // namespace quantd
