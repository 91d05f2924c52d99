// QuantizationService as gRPC sees it: every method is a stream of bytes in and a stream of bytes
// out. On the wire a call with one request and one answer is just that, with one message each way.
//
// So tensors are never parsed by protobuf, and a call is ours as soon as its headers are here, not
// when gRPC has read the whole request: it is counted, cancelled and bounded from then on, and a
// drain lets the upload that is under way finish (gRPC cancels what it still reads by itself).
#ifndef QUANTD_SERVER_RPC_SERVICE_H_
#define QUANTD_SERVER_RPC_SERVICE_H_

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include "quantd/v1/quantization.grpc.pb.h"
#include "server/metrics/metrics.h"

namespace quantd::rpc {

using ByteStream = grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

// Safe from any thread once the server has started.
class Service final : public grpc::Service {
 public:
  Service() {
    using grpc::internal::RpcMethod;
    using grpc::internal::RpcServiceMethod;
    // In the order of metrics::Rpc. No handler: the calls are taken from a completion queue.
    for (const char* path :
         {"/quantd.v1.QuantizationService/Quantize", "/quantd.v1.QuantizationService/Dequantize",
          "/quantd.v1.QuantizationService/DynamicQuantize", "/quantd.v1.QuantizationService/Stream",
          "/quantd.v1.QuantizationService/GetServerInfo"}) {
      AddMethod(new RpcServiceMethod(path, RpcMethod::BIDI_STREAMING, nullptr));
    }
  }

  // Completes `tag` when a call of this method has come; not ok when the server shuts down.
  void Request(metrics::Rpc rpc, grpc::ServerContext& context, ByteStream& stream,
               grpc::ServerCompletionQueue* queue, void* tag) {
    RequestAsyncBidiStreaming(static_cast<int>(rpc), &context, &stream, queue, queue, tag);
  }
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_SERVICE_H_
