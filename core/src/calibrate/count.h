// Adds the values of a tensor to channels.
#ifndef QUANTD_SRC_CALIBRATE_COUNT_H_
#define QUANTD_SRC_CALIBRATE_COUNT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "calibrate/channels.h"
#include "pool/tasks.h"
#include "quantd/arithmetic.h"
#include "quantd/executor.h"
#include "quantd/parameters.h"

namespace quantd::calibrate {

// A tensor as [outer, channels, inner].
struct Extents {
  int64_t outer;
  int64_t channels;
  int64_t inner;

  int64_t elements() const { return outer * channels * inner; }
};

// INVALID_ARGUMENT ("x"): NaN or infinity, if rejected; names the first, and `channels` is
// unchanged. CANCELLED: interrupted; `channels` contains a part of x then. REQUIRES: x has the
// size of `extents` and is FLOAT, FLOAT16, BFLOAT16 or INT32; extents.channels ==
// channels.size().
absl::Status Count(const TensorView& x, const Extents& extents, NonFinite non_finite,
                   Workers workers, Interrupted interrupted, Channels& channels);

}  // namespace quantd::calibrate

#endif  // QUANTD_SRC_CALIBRATE_COUNT_H_
