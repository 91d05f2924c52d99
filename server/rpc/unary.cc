// A call with one request and one answer, from its first byte to its last.
#include <grpcpp/server_context.h>

#include "server/rpc/call_metrics.h"
#include "server/rpc/calls.h"
#include "server/rpc/event.h"
#include "server/rpc/work.h"
#include "server/wire/status_details.h"

namespace quantd::rpc {

Call ServeUnary(Calls& calls, Backend& backend, Queue& queue, wire::Method method) {
  grpc::ServerContext context;
  ByteStream stream(&context);
  Event arrived, done, read, taken, admitted, finished;
  context.AsyncNotifyWhenDone(done.tag());
  const auto rpc = static_cast<metrics::Rpc>(method);
  backend.service.Request(rpc, context, stream, queue.get(), arrived.tag());
  const bool is_call = co_await arrived;
  if (!is_call) co_return;  // the server shuts down; `done` never completes
  ServeUnary(calls, backend, queue, method);

  ++backend.answering;
  CallMetrics meter(backend.metrics.method(rpc));
  {
    grpc::ByteBuffer bytes_in;
    stream.Read(&bytes_in, read.tag());
    const bool has_request = co_await read;
    Work work(backend, context, done);
    absl::Status status;
    if (has_request) {
      meter.Received();
      work.Take(bytes_in, taken);
      co_await taken;
      status = work.Decode(method);
    } else {
      // Cancelled, too large (gRPC has told the client), or a client that sent nothing.
      status = absl::CancelledError("the request did not arrive");
    }
    if (status.ok()) status = work.Plan();
    if (status.ok()) status = work.Admit(admitted);
    if (status.ok()) {
      co_await admitted;
      status = work.Execute();
    }
    const grpc::Status answer = wire::ToGrpcStatus(status);
    meter.SetCode(answer.error_code());
    if (answer.ok()) {
      stream.WriteAndFinish(work.Encode(), grpc::WriteOptions(), answer, finished.tag());
    } else {
      stream.Finish(answer, finished.tag());
    }
    const bool sent = co_await finished;
    if (sent && answer.ok()) meter.Sent();
  }  // the permit is free, the request's bytes are gone

  co_await done;
  meter.Finish(context);
  --backend.answering;
}

}  // namespace quantd::rpc
