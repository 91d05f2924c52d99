// Converts a parsed request and the bytes of its tensors to the core's parameters. Detects all
// errors that a single field can have. Only for decode.cc.
#ifndef QUANTD_SERVER_WIRE_CONVERT_H_
#define QUANTD_SERVER_WIRE_CONVERT_H_

#include "absl/status/statusor.h"
#include "quantd/field_error.h"
#include "quantd/v1/quantization.pb.h"
#include "server/wire/request.h"
#include "server/wire/split.h"

namespace quantd::wire {

// Returns the errors of decode.h. Views `raw`; values are packed into the request.
absl::StatusOr<Request> Convert(const v1::QuantizeRequest& message, const RawData& raw);
absl::StatusOr<Request> Convert(const v1::DequantizeRequest& message, const RawData& raw);
absl::StatusOr<Request> Convert(const v1::DynamicQuantizeRequest& message, const RawData& raw);
absl::StatusOr<Request> Convert(const v1::QuantizeEmbeddingsRequest& message, const RawData& raw);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_CONVERT_H_
