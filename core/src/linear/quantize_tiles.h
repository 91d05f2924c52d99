// The tile loop of Quantize, and of the second pass of DynamicQuantize.
#ifndef QUANTD_SRC_LINEAR_QUANTIZE_TILES_H_
#define QUANTD_SRC_LINEAR_QUANTIZE_TILES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "pool/tasks.h"
#include "quantd/executor.h"
#include "quantd/plan.h"
#include "quantd/quantization_error.h"
#include "walk/part.h"

namespace quantd {

// Everything that determines the results of the elements.
struct QuantizeWork {
  DataType input_type;
  DataType output_type;
  Part part;
  int64_t origin = 0;    // the element that y starts with
  uint64_t input_bytes;  // of all parts
  // Whether each thread begins with its last elements, which an earlier pass has left in its cache.
  bool backwards = false;
  const BlockLayout* layout;
  Quotient quotient;
  ZeroPointOrder order;
  // Each has one entry per scale of the part.
  const float* scale;
  const float* dequantize_scale;  // for the error report; may be `scale`
  const float* zero_point;        // null: none
  int32_t minimum;
  int32_t maximum;
  bool saturate;
};

// Writes the packed codes of the part's elements to y, which covers all parts. Adds to `sums` for
// the report, unless that is null. Returns CANCELLED if interrupted.
absl::Status QuantizeTiles(const QuantizeWork& work, absl::Span<const uint8_t> x, Workers workers,
                           Interrupted interrupted, absl::Span<uint8_t> y, ErrorSums* sums);

}  // namespace quantd

#endif  // QUANTD_SRC_LINEAR_QUANTIZE_TILES_H_
