// Splits a message into two parts: the bytes of its tensors, which stay where they are, and the
// rest, which is small and is parsed by the generated parser.
//
//   QuantizeRequest { x { data_type shape raw_data: 16 MiB } scale { ... raw_data } ... }
//   ->  a skeleton, the same message with every raw_data empty, and a view of each raw_data
//
// A tensor is never copied, and protobuf itself handles everything that it defines: fields that
// occur twice, members of a oneof, packed and single values. The generated descriptors tell which
// fields contain tensors, so a new field needs no change here.
#ifndef QUANTD_SERVER_WIRE_SPLIT_H_
#define QUANTD_SERVER_WIRE_SPLIT_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/wire/method.h"
#include "server/wire/request.h"
#include "server/wire/scan.h"

namespace google::protobuf {
class MessageLite;
}  // namespace google::protobuf

namespace quantd::wire {

// The raw_data of a request's tensors: for each the last one in the message, which is the valid one
// if the parsed tensor has raw_data at all.
using RawData = std::array<BytesView, kTensorFields>;

struct Split {
  // False if the bytes are not a valid message, as far as they were inspected; then the other
  // members are meaningless. The parser must not see such bytes: it trusts the length of a message
  // until it reaches its end, and allocates up to 50 MB for what the message announces.
  bool ok = false;
  // Unknown fields, which may be large, are left out: in the message itself, in the messages around
  // its tensors, and in the tensors.
  std::string skeleton;
  std::array<RawData, kOperations> raw;  // of the operations' requests, by method

  const RawData& of(Method method) const { return raw[OperationIndex(method)]; }
};

// Called between pieces of a long message, of which each takes some milliseconds.
using BetweenPieces = absl::FunctionRef<void()>;

// Splits the request of `method`; kStream: a StreamRequest.
Split SplitRequest(Method method, BytesView message, BetweenPieces between = [] {});

// Parses the skeleton. Returns INVALID_ARGUMENT if the bytes were not a valid message.
absl::Status Parse(
    const Split& split, google::protobuf::MessageLite& message, BetweenPieces between = [] {});

// What is known of a message before it is split. Uses no memory.
struct Rest {
  bool whole = true;           // false: there may be more fields than were inspected
  uint64_t bytes = 0;          // bytes of the skeleton; the maximum if not whole
  uint64_t packed_floats = 0;  // of these, packed float_values, which take the parser less memory
  uint64_t id = 0;             // of a stream's item, as far as it was read (like all of this)
};
// The number of fields that can be inspected while others wait: some 20 us. No honest message has
// as many, except for values that are not packed: 64 MiB may have 32 million.
inline constexpr uint64_t kFewFields = 1024;
// Inspects this number of fields, including those in groups, and as many in lists of float_values.
// In such a list, fields that were not inspected count as not packed.
Rest RestOf(Method method, BytesView message, uint64_t most_fields = UINT64_MAX);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_SPLIT_H_
