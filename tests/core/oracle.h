// The three operations as plain loops over the elements, which tests compare with.
//
// The scale of an element is computed from the plan's shape and block_shape, coordinate by
// coordinate, and not from its merged layout, so that merging is tested as well.
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
// set whether or not the plan has report_error (without it, it is inexact if `precision` rounds
// scales).
void Quantize(const QuantizePlan& plan, absl::Span<const uint8_t> x, absl::Span<uint8_t> y,
              QuantizationError* error);

void Dequantize(const DequantizePlan& plan, absl::Span<const uint8_t> x, absl::Span<uint8_t> y);

// Has the errors of quantd's DynamicQuantize.
absl::Status DynamicQuantize(const DynamicQuantizePlan& plan, absl::Span<const uint8_t> x,
                             const DynamicQuantizeOutput& output, QuantizationError* error);

// The rule by which a plan's scales are made.
rules::BlockRule BlockRuleOf(const DynamicQuantizePlan& plan);

// One of a plan's scales or zero points as FLOAT; `otherwise` if the operand is empty.
float ScaleAt(const ScaleOperand& operand, int64_t index, float otherwise = 1);
// A zero point in the form that Dequantize needs: an integer, or a code.
int32_t ZeroPointAt(const ScaleOperand& operand, int64_t index);

// The code of a Dequantize result in FLOAT, FLOAT16 or BFLOAT16.
uint32_t EncodeOutput(DataType output_type, float value);

// Adds one element to the error report. `x` is exact (an INT32 as double, not rounded to FLOAT).
void AddElement(ErrorSums& sums, double x, double restored, bool saturated);

// The index of each element's scale.
std::vector<int64_t> ScaleIndexes(const PlanBase& plan);

}  // namespace quantd::oracle

#endif  // QUANTD_TESTS_CORE_ORACLE_H_
