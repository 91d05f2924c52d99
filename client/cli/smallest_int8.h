// INT8 of DynamicQuantize is [-127, 127], of Quantize [-128, 127].
//
// A tensor that is quantized in pieces goes through Quantize, with the scale and zero point of the
// whole. Both differ only where the value before the clamp is below -127: there Quantize gives -128
// and DynamicQuantize -127.
#ifndef QUANTD_CLI_SMALLEST_INT8_H_
#define QUANTD_CLI_SMALLEST_INT8_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grid.h"
#include "quantd/quantization_error.h"

namespace quantd::cli {

bool HasSmallestInt8(absl::string_view y);

// Turns every -128 of `y` into -127, and `error`, which is that of y as it came, into that of y as
// it is then. `values` are the elements of `box` before; scales and zero points are those of the
// blocks that it touches.
void RaiseSmallestInt8(absl::Span<const float> values, const Box& box, const BlockGrid& grid,
                       absl::Span<const float> scales, absl::Span<const float> zero_points,
                       std::string* y, QuantizationError* error);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_SMALLEST_INT8_H_
