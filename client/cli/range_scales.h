// Scales and zero points made by the server from ranges alone.
#ifndef QUANTD_CLI_RANGE_SCALES_H_
#define QUANTD_CLI_RANGE_SCALES_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pieces.h"
#include "quantd/client/client.h"
#include "scan.h"

namespace quantd::cli {

struct RangeScales {
  ScaleTensor scale;
  ScaleTensor zero_point;    // type kUnspecified when there are none
  ScaleTensor tensor_scale;  // likewise
};

// What `method` makes of blocks with these ranges: a DynamicQuantize of a tensor with a row for
// each range. With `largest` (NVFP4) a last row holds the largest |x| of the whole tensor, so that
// the second scale is that of the whole. Sent in parts of at most `message_bytes`. The client's
// errors.
absl::StatusOr<RangeScales> ScalesOfRanges(client::Client& client,
                                           const v1::DynamicQuantizeRequest& method,
                                           absl::Span<const Range> ranges,
                                           std::optional<float> largest, uint64_t message_bytes);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_RANGE_SCALES_H_
