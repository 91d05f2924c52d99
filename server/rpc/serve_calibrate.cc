// A calibration, from its first message to its response. Messages arrive one after another, and
// each one arrives while the previous one is computed. The first error ends the call; later
// messages of the client are dropped.
#include "server/loop/lead.h"
#include "server/rpc/calibrating.h"
#include "server/rpc/call_metrics.h"
#include "server/rpc/calls.h"

namespace quantd::rpc {

Call ServeCalibrate(Calls& /*calls*/, Backend& backend, transport::ServerCall& stream) {
  CallMetrics meter(backend.metrics, backend.tracer, stream, wire::Method::kCalibrate);
  loop::Lead lead(stream.loop());
  MayCompress(backend, stream);
  loop::Event read, admitted, scheduled, written, finished;
  {
    Calibrating run(backend, stream, meter.timeline());
    absl::Status status;
    while (status.ok() && !run.done()) {
      admitted.Reset();
      scheduled.Reset();
      if (run.Next()) {
        read.Reset();
        stream.Read(run.message(), read);
        const bool has_message = co_await read;
        if (has_message) meter.Received();
        status = run.Received(has_message);
      }
      if (status.ok()) status = run.Admit(admitted);
      if (status.ok()) {
        const bool granted = co_await admitted;
        status = run.Admitted(granted);
      }
      if (!status.ok()) run.DropMessage();
      stream.Taken();  // the next message may come in
      if (status.ok()) status = run.TakeCore(scheduled);
      if (status.ok()) {
        const bool granted = co_await scheduled;
        status = run.MayCompute(granted);
      }
      if (status.ok()) status = run.Compute();
      co_await lead;
    }

    if (status.ok()) stream.Write(run.TakeResponse(), written, run.compressed());
    stream.Finish(meter.End(status), finished);
    if (status.ok()) {
      co_await written;
    }
    const bool sent = co_await finished;
    if (sent && status.ok()) meter.Sent();
    meter.Finish();
  }  // the permits are released
  stream.End();
}

}  // namespace quantd::rpc
