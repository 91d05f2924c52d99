// Calls with one request and one response, from their first byte to their last.
#include <optional>
#include <utility>

#include "server/loop/loop.h"
#include "server/rpc/call_metrics.h"
#include "server/rpc/calls.h"
#include "server/rpc/request_run.h"
#include "server/wire/status_details.h"

namespace quantd::rpc {

Call ServeUnary(Calls& /*calls*/, Backend& backend, transport::ServerCall& stream,
                wire::Method method) {
  CallMetrics meter(backend.metrics, backend.tracer, stream, method);
  loop::Lead lead(stream.loop());
  MayCompress(backend, stream);
  loop::Event read, admitted, scheduled, written, finished;
  {
    RequestRun run(backend, stream, meter.timeline());
    run.Read(read);
    const bool has_request = co_await read;
    if (has_request) meter.Received();
    absl::Status status = has_request ? run.Decode(method) : NoRequestStatus(stream);
    if (status.ok()) status = run.Admit(admitted);
    if (status.ok()) {
      const bool granted = co_await admitted;
      status = run.Admitted(granted);
    }
    if (!status.ok()) run.DropRequest();
    stream.Taken();  // the permit covers the message's memory; the budget for receiving is freed
    if (status.ok()) status = run.TakeCore(scheduled);
    if (status.ok()) {
      const bool granted = co_await scheduled;
      status = run.MayCompute(granted);
    }
    if (status.ok()) status = run.Execute();
    co_await lead;

    if (status.ok()) run.Write(written);
    if (run.made_as_sent() && meter.timeline() != nullptr) {
      co_await written;  // the timing includes the kernel's
    }
    stream.Finish(meter.End(status), finished);
    if (status.ok()) {
      co_await written;  // completes at once for a small response, before the kernel has it
    }
    const bool sent = co_await finished;
    if (sent && status.ok()) meter.Sent();
    meter.Finish();
  }  // the kernel has the response: its memory and the permit are released
  stream.End();
}

Call ServeOneResponse(Calls& /*calls*/, const Backend& backend, transport::ServerCall& stream,
                      const Response& response, const wire::Method* method) {
  std::optional<CallMetrics> meter;
  if (method != nullptr) meter.emplace(backend.metrics, backend.tracer, stream, *method);
  loop::Event read, written, finished;
  transport::Message request;
  stream.Read(request, read);
  const bool has_request = co_await read;
  absl::StatusOr<memory::Piece> piece = NoRequestStatus(stream);
  if (has_request) {
    if (meter.has_value()) meter->Received();
    piece = response(request);
  }
  const absl::Status status = piece.status();
  if (status.ok()) {
    stream.Write(*std::move(piece), written);
  } else {
    written.Complete(false);
  }
  stream.Finish(meter.has_value() ? meter->End(status) : wire::ToCallStatus(status), finished);
  co_await written;
  const bool sent = co_await finished;
  if (meter.has_value()) {
    if (sent && status.ok()) meter->Sent();
    meter->Finish();
  }
  stream.End();
}

}  // namespace quantd::rpc
