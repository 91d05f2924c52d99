// A message in two parts: the bytes of its tensors, which stay where they are, and all the rest,
// which is small and left to the generated parser.
//
//   QuantizeRequest { x { data_type shape raw_data: 16 MiB } scale { ... raw_data } ... }
//   ->  a skeleton, the same message with every raw_data empty, and a view of each raw_data
//
// A tensor is never copied, and everything that protobuf means by a message is protobuf's own
// doing: fields that occur twice, members of a oneof, packed and single values. Which fields hold
// tensors is read from the generated descriptors, so a new field is known here without a line.
#ifndef QUANTD_SERVER_WIRE_SPLIT_H_
#define QUANTD_SERVER_WIRE_SPLIT_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/wire/method.h"
#include "server/wire/request.h"
#include "server/wire/scan.h"

namespace google::protobuf {
class MessageLite;
}  // namespace google::protobuf

namespace quantd::wire {

// The raw_data of a request's tensors: of each the one that came last, which is the one that counts
// where the parsed tensor says that it has raw_data at all.
using RawData = std::array<BytesView, kTensorFields>;

struct Split {
  // False when the bytes are no such message, as far as they were looked into: then the rest is of
  // no use. The parser must not see them: it believes the length of a message until it is at its
  // end, and allocates up to 50 MB for what is said to be in it.
  bool ok = false;
  // Without fields that this version does not know, which may be large, in the message itself and
  // in the messages around and of its tensors.
  std::string skeleton;
  std::array<RawData, kOperations> raw;  // of the operations' requests, by method
  BytesView state;                       // of CalibrateRequest

  const RawData& of(Method method) const { return raw[OperationIndex(method)]; }
};

// Of the method's request; kStream: of StreamRequest.
Split SplitRequest(Method method, BytesView message);
// Of ParameterSet.
Split SplitSet(BytesView message);

// What the skeleton says. INVALID_ARGUMENT when the bytes were no such message.
absl::Status Parse(const Split& split, google::protobuf::MessageLite& message);

// What is known of a message before it is split. Takes no memory.
struct Rest {
  bool whole = true;             // false: there may be more fields than were looked at
  uint64_t bytes = 0;            // of the message that are in the skeleton; at most, if not whole
  uint64_t packed_floats = 0;    // of these, packed float_values, which the parser makes less of
  absl::string_view parameters;  // the stored set that the operation names, in the message
  uint64_t id = 0;               // of a stream's item; what could be read of it, as all of this
};
// What can be looked at while others wait: some 20 us. No honest message has as many fields, but
// for values that are not packed; 64 MiB may have 32 million.
inline constexpr uint64_t kFewFields = 1024;
// Looks at so many fields, those in groups among them, and at as many in lists of float_values,
// where what is not looked at counts as if it were not packed.
Rest RestOf(Method method, BytesView message, uint64_t most_fields = UINT64_MAX);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_SPLIT_H_
