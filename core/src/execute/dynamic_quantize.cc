#include "quantd/dynamic_quantize.h"

#include <cstddef>
#include <cstdint>

#include "execute/make_scales.h"
#include "execute/quantize_tiles.h"
#include "execute/ranges.h"

namespace quantd {
namespace {

// As PlanQuantize chooses for scales that arrive.
Quotient ChooseQuotient(const DynamicQuantizePlan& plan, DynamicScales& scales) {
  const DataTypeInfo& output = Info(plan.output_type);
  if (output.kind != DataTypeKind::kInteger || output.bits > 8) return Quotient::kDivide;
  // Without a way out of the loop, which keeps compilers from vectorising it.
  uint32_t beyond = 0;
  for (size_t i = 0; i < scales.size; ++i) {
    beyond |= !(scales.scale()[i] >= 0x1p-100f && scales.scale()[i] <= 0x1p76f);
  }
  return beyond == 0 ? Quotient::kReciprocal : Quotient::kDivide;
}

}  // namespace

absl::Status DynamicQuantize(const DynamicQuantizePlan& plan, const ByteChunks& x,
                             const Executor& executor, Interrupted interrupted,
                             const DynamicQuantizeOutput& output, QuantizationError* error) {
  DynamicScales scales(static_cast<size_t>(plan.layout.scale_count));
  if (plan.elements > 0) {
    const absl::Status status =
        FindRanges(plan, x, executor, interrupted, scales.min(), scales.max());
    if (!status.ok()) return status;
  }
  const absl::Status made = MakeScales(plan, executor, scales, output);
  if (!made.ok()) return made;

  const QuantizeWork work{
      .input_type = plan.input_type,
      .output_type = plan.output_type,
      .elements = plan.elements,
      .input_bytes = plan.input_bytes,
      .layout = &plan.layout,
      .quotient = ChooseQuotient(plan, scales),
      .order = ZeroPointOrder::kAfterRounding,
      .scale = scales.scale(),
      .dequantize_scale = scales.scale(),
      .zero_point = plan.has_zero_point ? scales.zero_point() : nullptr,
      .minimum = plan.minimum,
      .maximum = plan.maximum,
      .saturate = plan.saturate,
  };
  ErrorSums sums;
  const bool report = plan.report_error && error != nullptr;
  const absl::Status status =
      QuantizeTiles(work, x, executor, interrupted, output.y, report ? &sums : nullptr);
  if (status.ok() && report) *error = sums.Finish();
  return status;
}

}  // namespace quantd
