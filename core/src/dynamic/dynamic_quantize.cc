// Ranges, scales, codes: for all elements one after the other, or for a part at a time, while it
// stays in the second-level cache.
//
// Both passes go forwards, in the same tasks: the second one from the end backwards changed nothing
// from 1 to 128 MiB, and lost up to 40 % where each core's half fits its own cache. Tried for
// blocks of 32 without gain: ranges by fewer shuffles and more blends, or without comparisons
// (x - x is 0 where it is finite); larger batches of reciprocals; zero points prepared a batch
// ahead.
#include "quantd/dynamic_quantize.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dynamic/find_ranges.h"
#include "dynamic/make_scales.h"
#include "dynamic/part_split.h"
#include "linear/quantize_tiles.h"
#include "pool/tasks.h"
#include "pool/watch.h"
#include "walk/part.h"

namespace quantd {
namespace {

// As PlanQuantize chooses for scales that arrive.
Quotient ChooseQuotient(const DynamicQuantizePlan& plan, Magnitudes scales) {
  const DataTypeInfo& output = Info(plan.output_type);
  if (output.kind != DataTypeKind::kInteger || output.bits > 8) return Quotient::kDivide;
  return HasReciprocal(scales) ? Quotient::kReciprocal : Quotient::kDivide;
}

// What all parts share.
struct Job {
  const DynamicQuantizePlan& plan;
  const ByteChunks& x;
  Interrupted interrupted;
  const DynamicQuantizeOutput& output;
  DynamicScales& scales;

  absl::Status Run(const Part& part, Workers workers, ErrorSums* sums) const {
    std::fill_n(scales.min() + part.first_scale, part.scales, 0.0f);
    std::fill_n(scales.max() + part.first_scale, part.scales, 0.0f);
    if (part.elements() > 0) {
      const absl::Status found =
          FindRanges(plan, x, part, workers, interrupted, scales.min(), scales.max());
      if (!found.ok()) return found;
    }
    const absl::StatusOr<Magnitudes> made = MakeScales(plan, part, workers, scales, output);
    if (!made.ok()) return made.status();
    const float* scale = scales.scale() + part.first_scale;
    const QuantizeWork work{
        .input_type = plan.input_type,
        .output_type = plan.output_type,
        .part = part,
        .input_bytes = plan.input_bytes,
        .layout = &plan.layout,
        .quotient = ChooseQuotient(plan, *made),
        .order = ZeroPointOrder::kAfterRounding,
        .scale = scale,
        .dequantize_scale = scale,
        .zero_point = plan.has_zero_point ? scales.zero_point() + part.first_scale : nullptr,
        .minimum = plan.minimum,
        .maximum = plan.maximum,
        .saturate = plan.saturate,
    };
    return QuantizeTiles(work, x, workers, interrupted, output.y, sums);
  }
};

absl::Status RunParts(const Job& job, const PartSplit& split, const Executor& executor,
                      ErrorSums* sums) {
  // As many tasks as others have, of a MiB at most.
  const size_t most = static_cast<size_t>(executor.threads()) * TaskSplit::kTasksPerThread;
  const size_t per_task = std::clamp<size_t>(split.parts() / most, 1, 4);
  const size_t tasks = (split.parts() + per_task - 1) / per_task;
  // Of each part: they are added in the same order, however many threads there are.
  std::vector<ErrorSums> sums_of(sums == nullptr ? 0 : split.parts());
  std::vector<absl::Status> statuses(tasks);
  executor.ParallelFor(tasks, [&](size_t task) {
    const size_t end = std::min(split.parts(), (task + 1) * per_task);
    for (size_t part = task * per_task; part < end && statuses[task].ok(); ++part) {
      statuses[task] =
          job.Run(split.part(part), nullptr, sums == nullptr ? nullptr : &sums_of[part]);
    }
  });
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  for (const ErrorSums& part : sums_of) sums->Add(part);
  return absl::OkStatus();
}

}  // namespace

absl::Status DynamicQuantize(const DynamicQuantizePlan& plan, const ByteChunks& x,
                             const Executor& executor, Interrupted interrupted,
                             const DynamicQuantizeOutput& output, QuantizationError* error) {
  DynamicScales scales(static_cast<size_t>(plan.layout.scale_count));
  // What one part is told is known to all that come after it.
  Watch watch(interrupted);
  const auto stopped = [&watch] { return watch.Stopped(); };
  const Job job{plan, x, stopped, output, scales};
  const bool report = plan.report_error && error != nullptr;
  ErrorSums sums;
  const PartSplit split(plan);
  absl::Status status;
  if (split.parts() > 1) {
    status = RunParts(job, split, executor, report ? &sums : nullptr);
  }
  if (split.parts() == 1 || absl::IsInvalidArgument(status)) {
    // Which error is the first is found in all elements.
    status = job.Run(split.all(), &executor, report ? &sums : nullptr);
  }
  if (status.ok() && report) *error = sums.Finish();
  return status;
}

}  // namespace quantd
