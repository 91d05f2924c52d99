// Bytes in -> request. Accepts every message that a protobuf parser accepts, with the same meaning,
// but never copies the bytes of a tensor (split.h).
//
//   absl::StatusOr<Request> request = DecodeRequest(Method::kQuantize, message);   // a call
//   StreamItem item = DecodeStreamItem(message);                                   // a stream's
//
// Errors carry the path of the field (quantd/field_error.h), which starts at the request, for a
// stream's items as for calls: "x.raw_data", "scale.data_type", "output_type".
#ifndef QUANTD_SERVER_WIRE_DECODE_H_
#define QUANTD_SERVER_WIRE_DECODE_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "server/wire/method.h"
#include "server/wire/request.h"
#include "server/wire/scan.h"

namespace quantd::wire {

struct StoredSet;  // stored_set.h

// Finds the stored set that a request names. Null: not now; then the request that comes back has
// nothing but its missing_set, and is to be decoded again when that is here.
using FindSet = absl::FunctionRef<absl::StatusOr<std::shared_ptr<const StoredSet>>(
    absl::string_view reference)>;
// There is none: FAILED_PRECONDITION.
absl::StatusOr<std::shared_ptr<const StoredSet>> NoSets(absl::string_view reference);

// INVALID_ARGUMENT: the bytes are no such message, an enum has a number that the contract does not
// know, x (or scale, where it is required) is missing, a tensor has no data type, or its values
// (or its place in shared memory) do not fit type and shape. What depends on more than one field is
// left to the plan. The request views `message`. Errors of `find`, and those of a set that does not
// go with the request (stored_set.h). REQUIRES: an operation.
absl::StatusOr<Request> DecodeRequest(Method method, BytesView message, FindSet find = NoSets);

// One item of the call Stream.
struct StreamItem {
  uint64_t id = 0;               // what could be read of it, also when the item is bad
  std::optional<Method> method;  // which operation is asked for, when that could be read
  absl::StatusOr<Request> request;
};
StreamItem DecodeStreamItem(BytesView message, FindSet find = NoSets);

// Most memory that decoding a method's request (kStream: an item) takes beyond the message, but for
// a few KiB: of what is not raw_data, which the generated parser makes larger, values of a byte and
// most of all unknown fields. Takes none itself. Below kLittle it is not worth asking for.
uint64_t DecodeMemoryBytes(Method method, BytesView message);
// About how long decoding takes, in nanoseconds: reading a value takes as long in any form.
uint64_t DecodeNanoseconds(Method method, BytesView message);
// Of each such byte. The worst are unknown fields of two bytes, in messages without a tensor: 24
// for the string that holds nothing, as much for its place in a list that grows, 2 for the
// skeleton.
inline constexpr uint64_t kDecodeFactor = 52;
// Of each byte of packed float_values: skeletons and lists that double, and the packed tensor.
inline constexpr uint64_t kPackedFloatFactor = 8;
inline constexpr uint64_t kLittleDecodeMemory = 64 << 10;

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_DECODE_H_
