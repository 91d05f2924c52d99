// A call with one request and one answer, from its first byte to its last.
#include "server/loop/lead.h"
#include "server/rpc/call_metrics.h"
#include "server/rpc/calls.h"
#include "server/rpc/work.h"

namespace quantd::rpc {

Call ServeUnary(Calls& /*calls*/, Backend& backend, transport::Stream& stream,
                wire::Method method) {
  CallMetrics meter(backend.metrics, backend.tracer, stream, method);
  loop::Lead lead(stream.loop());
  MayCompress(backend, stream);
  loop::Event read, found, admitted, turn, written, finished;
  {
    Work work(backend, stream, meter.timeline());
    stream.Read(work.message(), read);
    const bool has_request = co_await read;
    if (has_request) meter.Received();
    absl::Status status = has_request ? work.Begin(method) : WhyNoRequest(stream);
    if (status.ok() && work.lacks_set()) {
      status = work.FindSet(found);
      if (status.ok()) {
        const bool has_set = co_await found;
        status = work.SetFound(has_set);
      }
    }
    if (status.ok()) status = work.Decode();
    if (status.ok()) status = work.Admit(admitted);
    if (status.ok()) {
      const bool granted = co_await admitted;
      status = work.Admitted(granted);
    }
    stream.Taken();
    if (status.ok()) status = work.TakeCore(turn);
    if (status.ok()) {
      const bool granted = co_await turn;
      status = work.MayCompute(granted);
    }
    if (status.ok()) status = work.Execute();
    co_await lead;

    if (status.ok()) stream.Write(work.Encode(), written, work.compressed());
    stream.Finish(meter.End(status), finished);
    if (status.ok()) {
      co_await written;
    }
    const bool sent = co_await finished;
    if (sent && status.ok()) meter.Sent();
    meter.Finish();
  }  // the permit is free
  stream.End();
}

}  // namespace quantd::rpc
