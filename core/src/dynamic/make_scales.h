// The step between the two passes of DynamicQuantize: makes scales and zero points from the ranges,
// for the second pass and for the result.
#ifndef QUANTD_SRC_DYNAMIC_MAKE_SCALES_H_
#define QUANTD_SRC_DYNAMIC_MAKE_SCALES_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/kernel_table.h"
#include "pool/tasks.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/plan.h"
#include "rules/scale_rules.h"
#include "types/scratch.h"
#include "walk/part.h"

namespace quantd {

// Two values for each scale of a part: first its range, then the results made from it. Entry i
// belongs to the part's scale i.
struct DynamicScales {
  // Room for a part with `count` scales.
  explicit DynamicScales(size_t count) : size(count), values(2 * count) {}

  float* min() { return values.data(); }
  float* max() { return min() + size; }
  // For messages: some kernels find -0 where others find 0.
  rules::Range range(size_t i) {
    rules::Range range;
    range.Include(min()[i]);
    range.Include(max()[i]);
    return range;
  }
  float* scale() { return min(); }
  float* zero_point() { return max(); }

  const size_t size;
  Scratch<float, 16> values;
};

// The ScaleMaker of a plan.
rules::ScaleMaker MakerOf(const DynamicQuantizePlan& plan);

// Makes the scales of a part, like `maker` but in loops over many scales, and writes their entries
// of `output`. Returns the scales' magnitudes. REQUIRES: the part begins at a multiple of 4 scales.
// INVALID_ARGUMENT (field "x"): names the first scale that underflows or overflows.
absl::StatusOr<Magnitudes> MakeScales(const DynamicQuantizePlan& plan,
                                      const rules::ScaleMaker& maker, const Part& part,
                                      Workers workers, DynamicScales& scales,
                                      const DynamicQuantizeOutput& output);

}  // namespace quantd

#endif  // QUANTD_SRC_DYNAMIC_MAKE_SCALES_H_
