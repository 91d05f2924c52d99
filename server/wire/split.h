// A request in two parts: the bytes of its tensors, which stay where they are, and all the rest,
// which is small and left to the generated parser.
//
//   QuantizeRequest { x { data_type shape raw_data: 16 MiB } scale { ... raw_data } ... }
//   ->  a skeleton, the same message with every raw_data empty, and a view of each raw_data
//
// So that a tensor is never copied, and everything that protobuf means by a message is protobuf's
// own doing: fields that occur twice, members of a oneof, packed and single values, unknown fields.
#ifndef QUANTD_SERVER_WIRE_SPLIT_H_
#define QUANTD_SERVER_WIRE_SPLIT_H_

#include <array>
#include <cstdint>
#include <string>

#include "server/wire/method.h"
#include "server/wire/request.h"
#include "server/wire/scan.h"

namespace quantd::wire {

// The field of a request that holds a tensor, by operation; 0: it has none such. Of another number
// a field may hold any bytes.
inline constexpr std::array<std::array<uint32_t, kTensorFields>, kUnaryOperations> kTensorNumbers =
    {{
        {1, 2, 3, 0, 0},   // Quantize
        {1, 2, 3, 15, 0},  // Dequantize
        {1, 0, 0, 0, 0},   // DynamicQuantize
        {1, 0, 0, 0, 3},   // QuantizeEmbeddings
    }};

// The raw_data of a request's tensors: of each the one that came last, which is the one that counts
// where the parsed tensor says that it has raw_data at all.
using RawData = std::array<BytesView, kTensorFields>;

struct Split {
  // False when the bytes are no such message, as far as they were looked into: then the rest is of
  // no use. The parser must not see them: it believes the length of a message until it is at its
  // end, and allocates up to 50 MB for what is said to be in it.
  bool ok = false;
  std::string skeleton;
  std::array<RawData, kUnaryOperations> raw;  // by method; of a call's request only its own

  uint64_t raw_bytes(Method method) const {
    uint64_t bytes = 0;
    for (const BytesView view : raw[OperationIndex(method)]) bytes += view.size();
    return bytes;
  }
};

// Bytes of the message that are not raw_data of its tensors: what the skeleton and parsing it take,
// but for a factor. Takes no memory. `is_item`: it is a StreamRequest.
uint64_t RestBytes(bool is_item, BytesView message);
// Of these, the bytes of packed float_values, which become no more than a few times as many.
uint64_t PackedFloatBytes(bool is_item, BytesView message);

// Of the message <method>Request, or of StreamRequest.
Split SplitRequest(Method method, BytesView message);
Split SplitItem(BytesView message);

// The same for the messages of a calibration, whose state stays where it is, too.
struct CalibrateSplit {
  bool ok = false;
  std::string skeleton;  // without the state
  RawData raw;           // of x
  BytesView state;
};
CalibrateSplit SplitCalibrate(BytesView message);
uint64_t CalibrateRestBytes(BytesView message);
// Of ParameterSet, and of the PutParametersRequest that has one; raw is by the kind of the set.
Split SplitSet(BytesView message);
Split SplitPut(BytesView message);
uint64_t PutRestBytes(BytesView message);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_SPLIT_H_
