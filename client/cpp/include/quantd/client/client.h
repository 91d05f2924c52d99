// quantd from C++: a connection, and the calls over std types.
//
//   quantd::client::Client client("127.0.0.1:50051");
//   DynamicQuantizeOptions options{.output_type = v1::DATA_TYPE_INT8, .report_error = true};
//   absl::StatusOr<Quantized> result =
//       client.DynamicQuantize(Tensor::Of<float>(values, {rows, columns}), options);
//
// A thin layer over the generated stubs: it raises gRPC's 4 MiB limit on messages, sets deadlines,
// tries again when the server says that it is overloaded, and turns errors into absl::Status that
// name the field (status.h). What the fields mean is written in proto/quantd/v1.
#ifndef QUANTD_CLIENT_CLIENT_H_
#define QUANTD_CLIENT_CLIENT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "quantd/client/tensor.h"
#include "quantd/v1/quantization.grpc.pb.h"

namespace grpc {
class Channel;
}

namespace quantd::client {

// How a client behaves.
struct ClientOptions {
  absl::Duration timeout = absl::Minutes(5);  // deadline of each attempt
  int max_attempts = 5;                       // tries when the server is overloaded; 1: no retry
};

// Which scale belongs to which element; all unset: one for the tensor (or by the scale's shape).
struct Granularity {
  std::optional<int64_t> axis;  // in [-rank, rank - 1]
  int64_t block_size = 0;       // elements a block along axis; 0: not blocked
  std::vector<int64_t>
      block_shape;  // one length a dimension, -1 for the whole; without axis, block_size
};

struct QuantizeOptions {
  v1::DataType output_type = v1::DATA_TYPE_UNSPECIFIED;  // unset: zero_point's type, else UINT8
  Granularity granularity = {};
  bool saturate = true;  // FLOAT8 only
  v1::DataType precision = v1::DATA_TYPE_UNSPECIFIED;
  v1::ZeroPointOrder zero_point_order = v1::ZERO_POINT_ORDER_UNSPECIFIED;
  bool report_error = false;
  std::optional<SharedSpan> output = {};  // where y goes: room for it, and no part of an argument
};

struct DynamicQuantizeOptions {
  v1::DataType output_type = v1::DATA_TYPE_UNSPECIFIED;  // unset: UINT8
  Granularity granularity = {};
  bool saturate = true;  // FLOAT8 only
  v1::DataType scale_type = v1::DATA_TYPE_UNSPECIFIED;
  v1::Symmetry symmetry = v1::SYMMETRY_UNSPECIFIED;
  v1::NonFinite non_finite = v1::NON_FINITE_UNSPECIFIED;
  bool report_error = false;
  std::optional<SharedSpan> output = {};
};

struct DequantizeOptions {
  v1::DataType output_type = v1::DATA_TYPE_UNSPECIFIED;  // unset: scale's type
  Granularity granularity = {};
  std::optional<Tensor> tensor_scale = {};  // NVFP4's second scale
  std::optional<SharedSpan> output = {};
};

// A quantized tensor with all that is needed to dequantize it.
struct Quantized {
  Tensor y;                                    // of x's shape
  Tensor scale;                                // Quantize: as given
  std::optional<Tensor> zero_point;            // of scale's shape
  std::optional<Tensor> tensor_scale;          // NVFP4 only
  std::optional<v1::QuantizationError> error;  // set if report_error
};

// A connection to a server. Thread safe: calls may be made from any number of threads at once.
class Client {
 public:
  // `address`: host:port, or unix:/path. Does not block; the connection is made by the first call.
  explicit Client(const std::string& address, const ClientOptions& options = {});
  ~Client();

  absl::StatusOr<Quantized> Quantize(const Tensor& x, const Tensor& scale,
                                     const std::optional<Tensor>& zero_point = std::nullopt,
                                     const QuantizeOptions& options = {});
  absl::StatusOr<Tensor> Dequantize(const Tensor& x, const Tensor& scale,
                                    const std::optional<Tensor>& zero_point = std::nullopt,
                                    const DequantizeOptions& options = {});
  absl::StatusOr<Quantized> DynamicQuantize(const Tensor& x,
                                            const DynamicQuantizeOptions& options = {});
  absl::StatusOr<v1::GetServerInfoResponse> GetServerInfo();

  // The same calls over the messages of the contract.
  absl::StatusOr<v1::QuantizeResponse> Call(const v1::QuantizeRequest& request);
  absl::StatusOr<v1::DequantizeResponse> Call(const v1::DequantizeRequest& request);
  absl::StatusOr<v1::DynamicQuantizeResponse> Call(const v1::DynamicQuantizeRequest& request);

  // For calls that are not above: Stream, health, reflection.
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  template <typename Request, typename Response>
  using Method = grpc::Status (v1::QuantizationService::Stub::*)(grpc::ClientContext*,
                                                                 const Request&, Response*);
  template <typename Request, typename Response>
  absl::StatusOr<Response> Attempt(Method<Request, Response> method, const Request& request);

  const ClientOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::QuantizationService::Stub> stub_;
};

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CLIENT_H_
