// A call with one request and one answer, from its first byte to its last.
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>

#include "server/rpc/call_metrics.h"
#include "server/rpc/calls.h"
#include "server/rpc/event.h"
#include "server/rpc/work.h"
#include "server/wire/status_details.h"

namespace quantd::rpc {
namespace {

using Writer = grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>;

void RequestCall(Service& service, wire::Method method, grpc::ServerContext& context,
                 grpc::ByteBuffer& bytes_in, Writer& writer, Queue& queue, Event& arrived) {
  grpc::ServerCompletionQueue* const cq = queue.get();
  switch (method) {
    case wire::Method::kQuantize:
      return service.RequestQuantize(&context, &bytes_in, &writer, cq, cq, arrived.tag());
    case wire::Method::kDequantize:
      return service.RequestDequantize(&context, &bytes_in, &writer, cq, cq, arrived.tag());
    case wire::Method::kDynamicQuantize:
      return service.RequestDynamicQuantize(&context, &bytes_in, &writer, cq, cq, arrived.tag());
  }
}

}  // namespace

Call ServeUnary(Calls& calls, Backend& backend, Queue& queue, wire::Method method) {
  grpc::ServerContext context;
  grpc::ByteBuffer bytes_in;
  Writer writer(&context);
  Event arrived, done, taken, admitted, finished;
  context.AsyncNotifyWhenDone(done.tag());
  RequestCall(backend.service, method, context, bytes_in, writer, queue, arrived);
  const bool is_call = co_await arrived;
  if (!is_call) co_return;  // the server shuts down; `done` never completes
  ServeUnary(calls, backend, queue, method);

  CallMetrics meter(backend.metrics.method(static_cast<metrics::Rpc>(method)));
  meter.Received();
  {
    Work work(backend, context, done);
    work.Take(std::move(bytes_in), taken);
    co_await taken;
    absl::Status status = work.Decode(method);
    if (status.ok()) status = work.Plan();
    if (status.ok()) status = work.Admit(admitted);
    if (status.ok()) {
      co_await admitted;
      status = work.Execute();
    }
    const grpc::Status answer = wire::ToGrpcStatus(status);
    if (answer.ok()) {
      writer.Finish(work.Encode(), answer, finished.tag());
    } else {
      writer.FinishWithError(answer, finished.tag());
    }
    meter.SetCode(answer.error_code());
    const bool sent = co_await finished;
    if (sent && answer.ok()) meter.Sent();
  }  // the permit is free, the request's bytes are gone

  co_await done;
  meter.Finish(context);
}

}  // namespace quantd::rpc
