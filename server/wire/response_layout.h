// The contents and the size of a response, known from the plan, and the places that an operation
// fills. Independent of gRPC and protobuf.
#ifndef QUANTD_SERVER_WIRE_RESPONSE_LAYOUT_H_
#define QUANTD_SERVER_WIRE_RESPONSE_LAYOUT_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "quantd/operation.h"
#include "quantd/quantization_error.h"
#include "server/wire/method.h"
#include "server/wire/request.h"

namespace quantd::wire {

struct ResponseLayout : ResultLayout {
  Method method = Method::kQuantize;
  Encoding encoding = Encoding::kRaw;
  // The place of y if it is not in the response, which then names it: exactly the bytes of y.
  std::optional<SharedReference> output;
};

// The most bytes of the response on the wire, a stream's envelope included.
uint64_t MaxEncodedBytes(const ResponseLayout& layout);

// The most bytes that Response (encode.h) allocates for it: MaxEncodedBytes, or more if it is to
// contain values.
uint64_t ResponseMemoryBytes(const ResponseLayout& layout);

// Where an operation writes: packed bytes, exactly as many as the layout says. A span is empty if
// there is no such tensor, or if y goes to shared memory and has not been given its place yet.
// Every byte must be written: nothing is initialised. A large y in the response starts at a
// multiple of 64.
struct ResponseContents {
  absl::Span<uint8_t> y;
  absl::Span<uint8_t> y_scale;
  absl::Span<uint8_t> y_zero_point;
  absl::Span<uint8_t> y_tensor_scale;
  QuantizationError error;  // to be set if the layout has report_error
};

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_RESPONSE_LAYOUT_H_
