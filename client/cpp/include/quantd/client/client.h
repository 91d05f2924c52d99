// quantd from C++: a connection, and the calls over std types. C++17.
//
//   quantd::client::Client client;  // QUANTD_ADDRESS, else 127.0.0.1:50051
//   DynamicQuantizeOptions options;
//   options.output_type = v1::DATA_TYPE_INT8;
//   absl::StatusOr<Quantized> result =
//       client.DynamicQuantize(Tensor::Of<float>(values, {rows, columns}), options);
//   absl::StatusOr<Tensor> back = client.Dequantize(*result);
//
// A layer over the generated stubs: it sets deadlines, retries when the server says that it is
// overloaded, sends tensors that are larger than the server's messages in pieces where their rows
// have scales of their own, and converts errors to absl::Status with the name of the field
// (status.h). proto/quantd/v1 defines each field.
#ifndef QUANTD_CLIENT_CLIENT_H_
#define QUANTD_CLIENT_CLIENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "quantd/client/options.h"
#include "quantd/client/tensor.h"
#include "quantd/v1/quantization.grpc.pb.h"

namespace grpc {
class Channel;
}

namespace quantd::client {

class Cancellation;
class Connection;

// A call that was started. May be copied; when it is destroyed, the call continues.
class AsyncCall {
 public:
  // Ends the call soon, with CANCELLED, unless it is done. Safe from any thread, any number of
  // times.
  void Cancel() const;

 private:
  friend class Client;
  explicit AsyncCall(std::shared_ptr<Cancellation> cancellation);
  std::shared_ptr<Cancellation> cancellation_;
};

// A connection to a server. Thread-safe: any number of threads may make calls at the same time.
class Client {
 public:
  // `address`: host:port, host (port 50051), unix:/path or any other gRPC target; empty:
  // QUANTD_ADDRESS, or else 127.0.0.1:50051. Does not block; the first call connects. If the
  // address, a TLS file or the token is invalid, every call returns that error,
  // INVALID_ARGUMENT.
  explicit Client(const std::string& address = "", const ClientOptions& options = {});
  // Waits for the callbacks of all started calls. Must not be called in a callback.
  ~Client();

  absl::StatusOr<Quantized> Quantize(const Tensor& x, const Tensor& scale,
                                     const std::optional<Tensor>& zero_point = std::nullopt,
                                     const QuantizeOptions& options = {});
  absl::StatusOr<Tensor> Dequantize(const Tensor& x, const Tensor& scale,
                                    const std::optional<Tensor>& zero_point = std::nullopt,
                                    const DequantizeOptions& options = {});
  absl::StatusOr<Quantized> DynamicQuantize(const Tensor& x,
                                            const DynamicQuantizeOptions& options = {});
  absl::StatusOr<QuantizedEmbeddings> QuantizeEmbeddings(const Tensor& x,
                                                         const EmbeddingOptions& options);
  // Dequantizes a result, with its granularity and tensor scale, to its original type (for INT32:
  // to scale's type, or FLOAT if y can't have that). Fields set in `options` take precedence.
  absl::StatusOr<Tensor> Dequantize(const Quantized& quantized,
                                    const DequantizeOptions& options = {});
  absl::StatusOr<v1::GetServerInfoResponse> GetServerInfo();

  // Asynchronous versions of these calls: `done` is called once, on a thread of gRPC, with the
  // result. It should be quick, and may start other calls.
  AsyncCall QuantizeAsync(Tensor x, Tensor scale, std::optional<Tensor> zero_point,
                          QuantizeOptions options,
                          std::function<void(absl::StatusOr<Quantized>)> done);
  AsyncCall DequantizeAsync(Tensor x, Tensor scale, std::optional<Tensor> zero_point,
                            DequantizeOptions options,
                            std::function<void(absl::StatusOr<Tensor>)> done);
  AsyncCall DynamicQuantizeAsync(Tensor x, DynamicQuantizeOptions options,
                                 std::function<void(absl::StatusOr<Quantized>)> done);

  // The same calls with the messages of the contract. Each is one RPC, whatever its size.
  absl::StatusOr<v1::QuantizeResponse> Call(const v1::QuantizeRequest& request);
  absl::StatusOr<v1::DequantizeResponse> Call(const v1::DequantizeRequest& request);
  absl::StatusOr<v1::DynamicQuantizeResponse> Call(const v1::DynamicQuantizeRequest& request);
  absl::StatusOr<v1::QuantizeEmbeddingsResponse> Call(const v1::QuantizeEmbeddingsRequest& request);

  // The error of the address or the files, INVALID_ARGUMENT: all calls fail with it.
  const absl::Status& status() const;

  // For other RPCs: Stream, health, reflection.
  const std::shared_ptr<grpc::Channel>& channel() const;

 private:
  std::unique_ptr<Connection> connection_;
};

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CLIENT_H_
