// GetServerInfo, and the start of all calls.
#include <grpcpp/server_context.h>

#include "server/rpc/call_metrics.h"
#include "server/rpc/calls.h"
#include "server/rpc/event.h"

namespace quantd::rpc {

Call ServeInfo(Calls& calls, Backend& backend, Queue& queue) {
  grpc::ServerContext context;
  ByteStream stream(&context);
  Event arrived, done, read, finished;
  context.AsyncNotifyWhenDone(done.tag());
  backend.service.Request(metrics::Rpc::kGetServerInfo, context, stream, queue.get(),
                          arrived.tag());
  const bool is_call = co_await arrived;
  if (!is_call) co_return;  // the server shuts down; `done` never completes
  ServeInfo(calls, backend, queue);

  CallMetrics meter(backend.metrics.method(metrics::Rpc::kGetServerInfo));
  grpc::ByteBuffer request;  // has no fields
  stream.Read(&request, read.tag());
  const bool has_request = co_await read;
  if (has_request) meter.Received();
  stream.WriteAndFinish(backend.info, grpc::WriteOptions(), grpc::Status::OK, finished.tag());
  const bool sent = co_await finished;
  if (sent) meter.Sent();
  co_await done;
  meter.Finish(context);
}

void ServeAll(Backend& backend, Queue& queue) {
  // A call that finds nobody waiting for it is kept by gRPC, but the first one to come must then
  // walk to the queue: 64 waiting calls of about 2 KiB each are cheaper.
  constexpr int kWaitingCalls = 64;
  for (int i = 0; i < kWaitingCalls; ++i) {
    for (const wire::Method method : wire::kMethods) {
      ServeUnary(backend.calls, backend, queue, method);
    }
    ServeStream(backend.calls, backend, queue);
  }
  ServeInfo(backend.calls, backend, queue);
}

}  // namespace quantd::rpc
