// The three operations as plain loops over the elements: the oracle of the tests.
//
// Which scale an element has is computed from the plan's shape and block_shape, coordinate by
// coordinate, and not from its merged layout, so that merging is under test as well.
#ifndef QUANTD_TESTS_CORE_ORACLE_H_
#define QUANTD_TESTS_CORE_ORACLE_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/quantize.h"
#include "rules/scale_rules.h"

namespace quantd::oracle {

// REQUIRES: x.size() == plan.input_bytes, y.size() == plan.output_bytes. `error` may be null; it is
// set whether or not the plan says report_error (exact only with it, when `precision` rounds
// scales).
void Quantize(const QuantizePlan& plan, absl::Span<const uint8_t> x, absl::Span<uint8_t> y,
              QuantizationError* error);

void Dequantize(const DequantizePlan& plan, absl::Span<const uint8_t> x, absl::Span<uint8_t> y);

// Errors as DynamicQuantize's.
absl::Status DynamicQuantize(const DynamicQuantizePlan& plan, absl::Span<const uint8_t> x,
                             const DynamicQuantizeOutput& output, QuantizationError* error);

// What a plan has rules::ScaleMaker do.
rules::BlockRule BlockRuleOf(const DynamicQuantizePlan& plan);

// One of a plan's scales or zero points as FLOAT; `otherwise` where the operand is empty.
float ScaleAt(const ScaleOperand& operand, int64_t index, float otherwise = 1);
// A zero point as Dequantize takes it: an integer, or a code.
int32_t ZeroPointAt(const ScaleOperand& operand, int64_t index);

// The code of a Dequantize result in FLOAT, FLOAT16 or BFLOAT16.
uint32_t EncodeOutput(DataType output_type, float value);

// Adds one element to the error report. `x` is exact (an INT32 in double, not by way of FLOAT).
void AddElement(ErrorSums& sums, double x, double restored, bool saturated);

// The index of each element's scale.
std::vector<int64_t> ScaleIndexes(const PlanBase& plan);

}  // namespace quantd::oracle

#endif  // QUANTD_TESTS_CORE_ORACLE_H_
