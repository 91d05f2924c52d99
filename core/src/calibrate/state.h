// The serialized state of a calibrator, which others can merge. Canonical: equal multisets of
// values have equal bytes.
//
//   "QDC1"  flags  channels  then for each channel:
//   finite  non_finite  [low high  [bins  then for each bin: step count]]
//
//   flags                1: has bins; 2: one channel per index of an axis
//   low, high            FLOAT, little endian; present if finite > 0, like bins
//   step                 the id minus that of the previous bin (at first -32640), in ascending
//                        order; ids are -m, 0 for the zero bin, m
//   numbers              unsigned LEB128, minimal; flags is one byte
#ifndef QUANTD_SRC_CALIBRATE_STATE_H_
#define QUANTD_SRC_CALIBRATE_STATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "calibrate/channels.h"

namespace quantd::calibrate {

// The most values of a channel in a state.
inline constexpr uint64_t kMostValues = uint64_t{1} << 62;

struct StateHead {
  bool has_bins = false;
  bool per_axis = false;
  uint64_t channels = 0;
};

std::string WriteState(const Channels& channels, bool per_axis);
// The size of the state.
uint64_t StateBytes(const Channels& channels, bool per_axis);

// Returns INVALID_ARGUMENT ("state") for bytes that WriteState does not make. If the head announces
// more channels than the bytes can describe, the error is found from the head alone.
absl::StatusOr<StateHead> ReadStateHead(absl::Span<const uint8_t> state);

// If `wants_bins` is false, bins in the state are checked, but not returned.
absl::StatusOr<Channels> ReadState(absl::Span<const uint8_t> state, bool wants_bins);

}  // namespace quantd::calibrate

#endif  // QUANTD_SRC_CALIBRATE_STATE_H_
