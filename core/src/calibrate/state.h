// What was seen, as bytes that others can add to theirs. Canonical: equal multisets of values give
// equal bytes.
//
//   "QDC1"  flags  channels  then for each channel:
//   finite  non_finite  [low high  [bins  then for each bin: step count]]
//
//   flags                1: bins are there; 2: a channel an index of an axis
//   low, high            FLOAT, little endian; there when finite > 0, and so are bins
//   step                 its id less that of the bin before (at first -32640), from the lowest up;
//                        ids are -m, 0 for the zero bin, m
//   numbers              unsigned LEB128, minimal; flags is one byte
#ifndef QUANTD_SRC_CALIBRATE_STATE_H_
#define QUANTD_SRC_CALIBRATE_STATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "calibrate/channels.h"

namespace quantd::calibrate {

// Most values of a channel in a state.
inline constexpr uint64_t kMostValues = uint64_t{1} << 62;

struct StateHead {
  bool has_bins = false;
  bool per_axis = false;
  uint64_t channels = 0;
};

std::string WriteState(const Channels& channels, bool per_axis);
// The bytes of that.
uint64_t StateBytes(const Channels& channels, bool per_axis);

// INVALID_ARGUMENT ("state") for bytes that WriteState does not make. More channels than the bytes
// could describe are refused by the head alone.
absl::StatusOr<StateHead> ReadStateHead(absl::Span<const uint8_t> state);

// `wants_bins`: else those that are there are checked, and left out.
absl::StatusOr<Channels> ReadState(absl::Span<const uint8_t> state, bool wants_bins);

}  // namespace quantd::calibrate

#endif  // QUANTD_SRC_CALIBRATE_STATE_H_
