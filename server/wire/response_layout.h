// What a response holds and how large it is, known from the plan, and the places that an operation
// fills. Knows no gRPC and no protobuf.
#ifndef QUANTD_SERVER_WIRE_RESPONSE_LAYOUT_H_
#define QUANTD_SERVER_WIRE_RESPONSE_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "quantd/operation.h"
#include "quantd/quantization_error.h"
#include "server/wire/method.h"
#include "server/wire/request.h"

namespace quantd::wire {

struct ResponseLayout : ResultLayout {
  Method method = Method::kQuantize;
  Encoding encoding = Encoding::kRaw;
  // Where y is, and so not in the response, which names this place: y's bytes, no more.
  std::optional<SharedReference> output;
  // The stored set that was used; empty: none.
  std::string parameters;
};

// Most bytes that the response takes on the wire, a stream's envelope included.
uint64_t MaxEncodedBytes(const ResponseLayout& layout);

// Most bytes that Response (encode.h) allocates for it. The same, or more when it is to hold
// values.
uint64_t ResponseMemoryBytes(const ResponseLayout& layout);

// Where an operation writes: packed bytes, exactly as many as the layout says (empty where there is
// no such tensor, and y that goes to shared memory until it is given its place there). Every byte
// must be written: nothing is initialised. y in the response starts at a multiple of 64 when it is
// large.
struct ResponseContents {
  absl::Span<uint8_t> y;
  absl::Span<uint8_t> y_scale;
  absl::Span<uint8_t> y_zero_point;
  absl::Span<uint8_t> y_tensor_scale;
  QuantizationError error;  // to be set if the layout says report_error
};

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_RESPONSE_LAYOUT_H_
