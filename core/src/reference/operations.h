// The three operations as plain loops over the elements: the oracle of the tests.
//
// Which scale an element has is computed from the plan's shape and block_shape, coordinate by
// coordinate, and not from its merged layout, so that merging is under test as well.
#ifndef QUANTD_REFERENCE_OPERATIONS_H_
#define QUANTD_REFERENCE_OPERATIONS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/quantize.h"

namespace quantd::reference {

// REQUIRES: x.size() == plan.input_bytes, y.size() == plan.output_bytes. `error` may be null; it is
// set whether or not the plan says report_error (exact only with it, when `precision` rounds
// scales).
void ReferenceQuantize(const QuantizePlan& plan, absl::Span<const uint8_t> x, absl::Span<uint8_t> y,
                       QuantizationError* error);

void ReferenceDequantize(const DequantizePlan& plan, absl::Span<const uint8_t> x,
                         absl::Span<uint8_t> y);

// Errors as DynamicQuantize's.
absl::Status ReferenceDynamicQuantize(const DynamicQuantizePlan& plan, absl::Span<const uint8_t> x,
                                      const DynamicQuantizeOutput& output,
                                      QuantizationError* error);

// The index of each element's scale.
std::vector<int64_t> ScaleIndexes(const PlanBase& plan);

}  // namespace quantd::reference

#endif  // QUANTD_REFERENCE_OPERATIONS_H_
