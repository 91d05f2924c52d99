// From flags to requests: how to quantize and dequantize, without x.
#ifndef QUANTD_CLI_METHOD_H_
#define QUANTD_CLI_METHOD_H_

#include "absl/status/statusor.h"
#include "pieces.h"
#include "quantize_job.h"
#include "server.h"

namespace quantd::cli {

// The method that the flags of quantize (and inspect) describe; `report_error` overrides the flag.
// INVALID_ARGUMENT, or the errors of files that --scale and --zero_point name.
absl::StatusOr<QuantizeMethod> MethodOfFlags(bool report_error);

// --axis, --block_size, --block_shape.
absl::StatusOr<Granularity> GranularityOfFlags();

// A list of whole numbers.
absl::StatusOr<Shape> ParseShape(const std::vector<std::string>& words, absl::string_view flag);

// A tensor of `type` from what --scale, --zero_point or --tensor_scale says: a number (0-D), a list
// of them (1-D), or a .npy file of any shape. Values that the type cannot hold are
// INVALID_ARGUMENT. A file of INT32 keeps its type when `int32_allowed`; a file of a float type
// does for a scale.
absl::StatusOr<v1::Tensor> ParseOperand(const std::string& text, absl::string_view flag,
                                        DataType type, bool int32_allowed);

// The limits of messages: the server's and --piece_bytes.
PieceLimits LimitsOfFlags(const Server& server);

// Connects to --address. `connect_seconds`: how long to wait for the first answer.
absl::StatusOr<std::unique_ptr<Server>> ConnectByFlags(double connect_seconds = 10);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_METHOD_H_
