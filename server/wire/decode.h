// Decodes bytes to a request. Accepts every message that a protobuf parser accepts, with the same
// meaning, but never copies the bytes of a tensor (split.h).
//
//   absl::StatusOr<Request> request = DecodeRequest(Method::kQuantize, message);  // a call's
//   absl::StatusOr<Request> request = DecodeRequest(Method::kStream, message);    // an item's
//
// Errors contain the path of the field (quantd/field_error.h), starting at the request for stream
// items and calls alike: "x.raw_data", "scale.data_type", "output_type".
#ifndef QUANTD_SERVER_WIRE_DECODE_H_
#define QUANTD_SERVER_WIRE_DECODE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/wire/method.h"
#include "server/wire/request.h"
#include "server/wire/scan.h"
#include "server/wire/split.h"

namespace quantd::wire {

// Returns INVALID_ARGUMENT if the bytes are not a valid message, an enum has an unknown number, x
// (or scale, where it is required) is missing, a tensor has no data type, its values (or its place
// in shared memory) do not fit type and shape. Errors of several fields together are left to the
// plan. The request views `message`. REQUIRES: an operation with one request, or kStream.
absl::StatusOr<Request> DecodeRequest(
    Method method, BytesView message, BetweenPieces between = [] {});

// Memory per byte that is not raw_data. The generated parser needs more memory for values of a
// byte, and most of all for unknown fields. The worst are fields of two bytes, in messages
// without a tensor: 24 for an empty string, as much for its place in a growing list, 2 for the
// skeleton.
inline constexpr uint64_t kDecodeFactor = 52;
// Memory per byte of packed float_values: skeletons, lists that double, and the packed tensor.
inline constexpr uint64_t kPackedFloatFactor = 8;
// The most memory that decoding takes in addition to the message, except for a few KiB.
constexpr uint64_t DecodeMemoryBytes(const Rest& rest) {
  return kDecodeFactor * (rest.bytes - rest.packed_floats) +
         kPackedFloatFactor * rest.packed_floats;
}
// The approximate time in nanoseconds: reading a value takes as long in any form.
constexpr uint64_t DecodeNanoseconds(const Rest& rest) { return kDecodeFactor * rest.bytes; }
// For less memory than this no reservation is made.
inline constexpr uint64_t kLittleDecodeMemory = 64 << 10;

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_DECODE_H_
