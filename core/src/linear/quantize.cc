#include "quantd/quantize.h"

#include "kernels/read_elements.h"
#include "linear/given_scales.h"
#include "linear/quantize_tiles.h"
#include "pool/watch.h"

namespace quantd {
namespace {

enum Column : size_t { kGiven, kRounded, kZeroPoint };

// Quantizes elements [begin, end); y starts with the first of them.
absl::Status Run(const QuantizePlan& plan, absl::Span<const uint8_t> x, int64_t begin, int64_t end,
                 const Executor& executor, Interrupted interrupted, absl::Span<uint8_t> y,
                 ErrorSums* sums) {
  // An interruption seen by one part is visible to all later ones.
  Watch watch(interrupted);
  const auto stopped = [&watch] { return watch.Stopped(); };
  const bool rounds = plan.precision != DataType::kFloat && plan.precision != plan.scales.type;
  const auto run = [&](const GivenPart& given, ColumnReader& reader, Workers workers,
                       ErrorSums* part_sums) {
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
        .origin = begin,
        .input_bytes = ByteSize(plan.input_type, end - begin),
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
    return QuantizeTiles(work, x, workers, stopped, y, part_sums);
  };
  return ForEachGivenPart(plan.layout, begin, end, &executor, sums, run);
}

}  // namespace

absl::Status Quantize(const QuantizePlan& plan, absl::Span<const uint8_t> x,
                      const Executor& executor, Interrupted interrupted, absl::Span<uint8_t> y,
                      QuantizationError* error) {
  ErrorSums sums;
  const bool report = plan.report_error && error != nullptr;
  const absl::Status status =
      Run(plan, x, 0, plan.elements, executor, interrupted, y, report ? &sums : nullptr);
  if (status.ok() && report) *error = sums.Finish();
  return status;
}

absl::Status QuantizeElements(const QuantizePlan& plan, absl::Span<const uint8_t> x, int64_t begin,
                              int64_t end, const Executor& executor, Interrupted interrupted,
                              absl::Span<uint8_t> y) {
  return Run(plan, x, begin, end, executor, interrupted, y, nullptr);
}

}  // namespace quantd
