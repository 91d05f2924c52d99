// A stream of requests: while item n is computed, item n + 1 is received and the response to item n
// - 1 is sent. A bad item is answered with an ItemError, and the stream continues.
#include "server/loop/loop.h"
#include "server/rpc/call_metrics.h"
#include "server/rpc/calls.h"
#include "server/rpc/request_run.h"
#include "server/wire/call_status.h"

namespace quantd::rpc {
namespace {

// Writes the responses of a stream, at most one at a time, and keeps its memory until it is sent.
class Writer {
 public:
  // `written` is the event of the response that is being sent.
  Writer(transport::ServerCall& stream, CallMetrics& meter, loop::Event& written)
      : stream_(stream), meter_(meter), written_(written) {}

  // A response is being sent: await its event, and then call Written.
  bool busy() const { return busy_; }
  void Written(bool sent) {
    busy_ = false;
    permit_.Release();
    if (sent) meter_.Sent();
  }

  // REQUIRES: !busy().
  void Write(memory::Piece response, bool compressed, admission::Permit permit) {
    permit_ = std::move(permit);
    written_.Reset();
    stream_.Write(std::move(response), written_, compressed);
    busy_ = true;
  }

 private:
  transport::ServerCall& stream_;
  CallMetrics& meter_;
  loop::Event& written_;
  bool busy_ = false;
  admission::Permit permit_;
};

}  // namespace

absl::Status Draining() {
  return wire::WithReason(absl::UnavailableError("the server is draining; try another one"),
                          "DRAINING");
}

Call ServeStream(Calls& /*calls*/, Backend& backend, transport::ServerCall& stream) {
  CallMetrics meter(backend.metrics, backend.tracer, stream, wire::Method::kStream);
  loop::Lead lead(stream.loop());
  MayCompress(backend, stream);
  loop::Event read, admitted, scheduled, written, finished;
  Writer writer(stream, meter, written);
  absl::Status end;  // the final status of the stream
  for (;;) {
    if (backend.draining.load(std::memory_order_relaxed)) {
      end = Draining();
      break;
    }
    RequestRun run(backend, stream, meter.timeline());
    read.Reset();
    run.Read(read);
    const bool has_item = co_await read;
    if (!has_item) break;  // the client has sent everything, or is gone
    meter.Received();

    admitted.Reset();
    scheduled.Reset();
    absl::Status status = run.Decode(wire::Method::kStream);
    if (status.ok()) status = run.Admit(admitted);
    if (status.ok() && run.queued() && writer.busy()) {
      // Holding one permit while waiting for another could wait for ever.
      const bool sent = co_await written;
      writer.Written(sent);
    }
    if (status.ok()) {
      const bool granted = co_await admitted;
      status = run.Admitted(granted);
    }
    if (!status.ok()) run.DropRequest();
    stream.Taken();  // the next item may come in
    if (status.ok()) status = run.TakeCore(scheduled);
    if (status.ok()) {
      const bool granted = co_await scheduled;
      status = run.MayCompute(granted);
    }
    if (status.ok()) status = run.Execute();
    if (!status.ok()) meter.ItemFailed(status);
    memory::Piece response = run.EncodeItem(status);
    co_await lead;

    if (stream.interrupted()) break;
    if (writer.busy()) {
      const bool sent = co_await written;
      writer.Written(sent);
      if (!sent) break;  // the client is gone
    }
    writer.Write(std::move(response), run.compressed(), run.TakePermit());
  }

  if (writer.busy()) {
    const bool sent = co_await written;
    writer.Written(sent);
  }
  if (end.ok() && stream.interrupted()) end = stream.interruption();
  stream.Finish(meter.End(end), finished);
  co_await finished;
  meter.Finish();
  stream.End();
}

}  // namespace quantd::rpc
