// Bytes in -> request. Accepts every message that a protobuf parser accepts, with the same meaning,
// but never copies the bytes of a tensor (split.h).
//
//   absl::StatusOr<Request> request = DecodeRequest(Method::kQuantize, message);  // a call's
//   absl::StatusOr<Request> request = DecodeRequest(Method::kStream, message);    // an item's
//
// Errors carry the path of the field (quantd/field_error.h), which starts at the request, for a
// stream's items as for calls: "x.raw_data", "scale.data_type", "output_type".
#ifndef QUANTD_SERVER_WIRE_DECODE_H_
#define QUANTD_SERVER_WIRE_DECODE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/wire/method.h"
#include "server/wire/request.h"
#include "server/wire/scan.h"
#include "server/wire/split.h"

namespace quantd::wire {

struct StoredSet;  // stored_set.h
using SetPointer = std::shared_ptr<const StoredSet>;

// INVALID_ARGUMENT: the bytes are no such message, an enum has a number that the contract does not
// know, x (or scale, where it is required) is missing, a tensor has no data type, or its values
// (or its place in shared memory) do not fit type and shape; the set does not go with the request
// (stored_set.h). What depends on more than one field is left to the plan. `set`: the one that the
// request names (Rest::parameters); FAILED_PRECONDITION: it names one, and there is none. The
// request views `message`. REQUIRES: an operation with one request, or kStream.
absl::StatusOr<Request> DecodeRequest(Method method, BytesView message, SetPointer set = nullptr);

// Of each byte that is not raw_data, which the generated parser makes larger, values of a byte and
// most of all unknown fields. The worst are those of two bytes, in messages without a tensor: 24
// for the string that holds nothing, as much for its place in a list that grows, 2 for the
// skeleton.
inline constexpr uint64_t kDecodeFactor = 52;
// Of each byte of packed float_values: skeletons and lists that double, and the packed tensor.
inline constexpr uint64_t kPackedFloatFactor = 8;
// Most memory that decoding takes beyond the message, but for a few KiB.
constexpr uint64_t DecodeMemoryBytes(const Rest& rest) {
  return kDecodeFactor * (rest.bytes - rest.packed_floats) +
         kPackedFloatFactor * rest.packed_floats;
}
// About how long it takes, in nanoseconds: reading a value takes as long in any form.
constexpr uint64_t DecodeNanoseconds(const Rest& rest) { return kDecodeFactor * rest.bytes; }
// Below this it is not worth asking for.
inline constexpr uint64_t kLittleDecodeMemory = 64 << 10;

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_DECODE_H_
