// Ranges, scales, codes: each for all elements, or all three for one part at a time, while it stays
// in the second-level cache.
//
// The second pass of a large tensor goes backwards, each thread in its own share: 10 to 30 % faster
// from 4 to 16 MiB (AVX-512). Backwards over the whole tensor, threads exchange their shares, and
// lose up to 40 % where a share fits its core's cache. Tried for blocks of 32 without gain: ranges
// by fewer shuffles and more blends, or without comparisons (x - x is 0 where it is finite); larger
// batches of reciprocals; zero points prepared a batch ahead.
#include "quantd/dynamic_quantize.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "dynamic/find_ranges.h"
#include "dynamic/make_scales.h"
#include "dynamic/part_split.h"
#include "linear/quantize_tiles.h"
#include "pool/parts.h"
#include "pool/tasks.h"
#include "pool/watch.h"
#include "walk/part.h"

namespace quantd {
namespace {

// The same choice as PlanQuantize makes for given scales.
Quotient ChooseQuotient(const DynamicQuantizePlan& plan, Magnitudes scales) {
  const DataTypeInfo& output = Info(plan.output_type);
  if (output.kind != DataTypeKind::kInteger || output.bits > 8) return Quotient::kDivide;
  return HasReciprocal(scales) ? Quotient::kReciprocal : Quotient::kDivide;
}

// Shared by all parts.
struct Job {
  const DynamicQuantizePlan& plan;
  absl::Span<const uint8_t> x;
  Interrupted interrupted;
  const DynamicQuantizeOutput& output;
  rules::ScaleMaker maker;

  absl::Status FindRangesOf(const Part& part, Workers workers, DynamicScales& scales) const {
    std::fill_n(scales.min(), part.scales, 0.0f);
    std::fill_n(scales.max(), part.scales, 0.0f);
    if (part.elements() == 0) return absl::OkStatus();
    return FindRanges(plan, plan.layout, x, part, workers, interrupted, scales.min(), scales.max());
  }

  // Quantizes a part whose ranges are known.
  absl::Status Quantize(const Part& part, Workers workers, DynamicScales& scales,
                        ErrorSums* sums) const {
    const absl::StatusOr<Magnitudes> made = MakeScales(plan, maker, part, workers, scales, output);
    if (!made.ok()) return made.status();
    const QuantizeWork work{
        .input_type = plan.input_type,
        .output_type = plan.output_type,
        .part = part,
        .input_bytes = plan.input_bytes,
        .backwards = workers != nullptr,
        .layout = &plan.layout,
        .quotient = ChooseQuotient(plan, *made),
        .order = ZeroPointOrder::kAfterRounding,
        .scale = scales.scale(),
        .dequantize_scale = scales.scale(),
        .zero_point = plan.has_zero_point ? scales.zero_point() : nullptr,
        .minimum = plan.minimum,
        .maximum = plan.maximum,
        .saturate = plan.saturate,
    };
    return QuantizeTiles(work, x, workers, interrupted, output.y, sums);
  }

  absl::Status Run(const Part& part, Workers workers, DynamicScales& scales,
                   ErrorSums* sums) const {
    const absl::Status found = FindRangesOf(part, workers, scales);
    return found.ok() ? Quantize(part, workers, scales, sums) : found;
  }

  // Sets the scale that NVFP4's other scales are relative to.
  absl::Status SetTensorScale(const rules::Range& tensor) {
    const rules::ScaleFault fault = maker.SetTensorScale(tensor);
    if (fault != rules::ScaleFault::kNone) return maker.Error(-1, tensor, fault);
    const float tensor_scale = maker.tensor_scale();
    std::memcpy(output.tensor_scale.data(), &tensor_scale, sizeof(tensor_scale));
    return absl::OkStatus();
  }
};

absl::Status QuantizeWhole(Job& job, const PartSplit& split, const Executor& executor,
                           ErrorSums* sums) {
  const Part all = split.all();
  DynamicScales scales(all.scales);
  absl::Status status = job.FindRangesOf(all, &executor, scales);
  if (status.ok() && job.plan.has_tensor_scale) {
    rules::Range tensor;
    for (size_t i = 0; i < all.scales; ++i) {
      tensor.Include(scales.min()[i]);
      tensor.Include(scales.max()[i]);
    }
    status = job.SetTensorScale(tensor);
  }
  return status.ok() ? job.Quantize(all, &executor, scales, sums) : status;
}

// A layout of one block with this number of elements.
BlockLayout OneBlock(int64_t elements) {
  BlockLayout one;
  one.dimensions.push_back({elements, elements, 1});
  one.scale_count = 1;
  return one;
}

// The range of all elements. Returns the errors of FindRanges.
absl::StatusOr<rules::Range> RangeOfAll(const Job& job, const Executor& executor) {
  float min = 0;
  float max = 0;
  const absl::Status found =
      FindRanges(job.plan, OneBlock(job.plan.elements), job.x, {0, job.plan.elements, 0, 1},
                 &executor, job.interrupted, &min, &max);
  if (!found.ok()) return found;
  rules::Range range;
  range.Include(min);
  range.Include(max);
  return range;
}

absl::Status QuantizeParts(Job& job, const PartSplit& split, const Executor& executor,
                           ErrorSums* sums) {
  if (job.plan.has_tensor_scale) {
    const absl::StatusOr<rules::Range> tensor = RangeOfAll(job, executor);
    if (!tensor.ok()) return tensor.status();
    const absl::Status set = job.SetTensorScale(*tensor);
    if (!set.ok()) return set;
  }
  // Parts that do not fit into the cache use all threads, one part after the other.
  const Workers within = split.in_cache() ? nullptr : &executor;
  absl::Status status = RunParts(split.parts(), split.in_cache() ? &executor : nullptr, sums, [&] {
    return [&, scales = std::make_unique<DynamicScales>(split.most_scales())](
               size_t part, ErrorSums* part_sums) {
      return job.Run(split.part(part), within, *scales, part_sums);
    };
  });
  if (!absl::IsInvalidArgument(status)) return status;
  // A part has failed. To find the first error: non-finite elements take precedence over scales.
  const absl::StatusOr<rules::Range> finite = RangeOfAll(job, executor);
  if (!finite.ok()) return finite.status();
  DynamicScales scales(split.most_scales());
  for (size_t part = 0; part < split.parts(); ++part) {
    absl::Status one = job.Run(split.part(part), &executor, scales, nullptr);
    if (!one.ok()) return one;
  }
  return status;
}

}  // namespace

absl::Status DynamicQuantize(const DynamicQuantizePlan& plan, absl::Span<const uint8_t> x,
                             const Executor& executor, Interrupted interrupted,
                             const DynamicQuantizeOutput& output, QuantizationError* error) {
  // An interruption seen by one part is visible to all later ones.
  Watch watch(interrupted);
  const auto stopped = [&watch] { return watch.Stopped(); };
  Job job{plan, x, stopped, output, MakerOf(plan)};
  const bool report = plan.report_error && error != nullptr;
  ErrorSums sums;
  const PartSplit split(plan);
  const auto run = split.parts() == 1 ? QuantizeWhole : QuantizeParts;
  const absl::Status status = run(job, split, executor, report ? &sums : nullptr);
  if (status.ok() && report) *error = sums.Finish();
  return status;
}

uint64_t ScratchBytes(const DynamicQuantizePlan& plan, int threads) {
  // Per scale of a part: two floats, and two more for its reciprocal.
  constexpr uint64_t kScale = 4 * sizeof(float);
  const PartSplit split(plan);
  const auto at_once = static_cast<uint64_t>(split.in_cache() ? threads : 1);
  return split.most_scales() * kScale * at_once + MostOwnRanges(plan);
}

}  // namespace quantd
