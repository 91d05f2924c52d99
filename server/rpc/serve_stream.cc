// A stream of requests: while item n is computed, item n + 1 comes in and the answer to item n - 1
// goes out. A bad item is answered with an ItemError and the stream goes on.
#include "server/errors/reason.h"
#include "server/loop/lead.h"
#include "server/rpc/call_metrics.h"
#include "server/rpc/calls.h"
#include "server/rpc/work.h"

namespace quantd::rpc {
namespace {

// The answers of a stream: at most one is on its way, and keeps its memory until it is sent.
class Writer {
 public:
  // `written` is the event of the answer that is on its way.
  Writer(transport::Stream& stream, CallMetrics& meter, loop::Event& written)
      : stream_(stream), meter_(meter), written_(written) {}

  // An answer is on its way: its event is to be awaited, and told with Written.
  bool busy() const { return busy_; }
  void Written(bool sent) {
    busy_ = false;
    permit_.Release();
    if (sent) meter_.Sent();
  }

  // REQUIRES: !busy().
  void Write(memory::Piece answer, bool compressed, admission::Permit permit) {
    permit_ = std::move(permit);
    written_.Reset();
    stream_.Write(std::move(answer), written_, compressed);
    busy_ = true;
  }

 private:
  transport::Stream& stream_;
  CallMetrics& meter_;
  loop::Event& written_;
  bool busy_ = false;
  admission::Permit permit_;
};

}  // namespace

absl::Status Draining() {
  return errors::WithReason(absl::UnavailableError("the server is draining; try another one"),
                            "DRAINING");
}

Call ServeStream(Calls& /*calls*/, Backend& backend, transport::Stream& stream) {
  CallMetrics meter(backend.metrics, backend.tracer, stream, wire::Method::kStream);
  loop::Lead lead(stream.loop());
  MayCompress(backend, stream);
  loop::Event read, found, admitted, turn, written, finished;
  Writer writer(stream, meter, written);
  absl::Status end;  // what the stream ends with
  for (;;) {
    if (backend.draining.load(std::memory_order_relaxed)) {
      end = Draining();
      break;
    }
    Work work(backend, stream, meter.timeline());
    read.Reset();
    stream.Read(work.message(), read);
    const bool has_item = co_await read;
    if (!has_item) break;  // the client has sent everything, or is gone
    meter.Received();

    found.Reset();
    admitted.Reset();
    turn.Reset();
    absl::Status status = work.Begin(wire::Method::kStream);
    if (status.ok() && work.lacks_set()) {
      status = work.FindSet(found);
      if (status.ok()) {
        const bool has_set = co_await found;
        status = work.SetFound(has_set);
      }
    }
    if (status.ok()) status = work.Decode();
    if (status.ok()) status = work.Admit(admitted);
    if (status.ok() && work.queued() && writer.busy()) {
      // Holding one permit while waiting for another could wait for ever.
      const bool sent = co_await written;
      writer.Written(sent);
    }
    if (status.ok()) {
      const bool granted = co_await admitted;
      status = work.Admitted(granted);
    }
    stream.Taken();  // the next item may come in
    if (status.ok()) status = work.TakeCore(turn);
    if (status.ok()) {
      const bool granted = co_await turn;
      status = work.MayCompute(granted);
    }
    if (status.ok()) status = work.Execute();
    if (!status.ok()) meter.ItemFailed(status);
    memory::Piece answer = work.EncodeItem(status);
    co_await lead;

    if (stream.interrupted()) break;
    if (writer.busy()) {
      const bool sent = co_await written;
      writer.Written(sent);
      if (!sent) break;  // the client is gone
    }
    writer.Write(std::move(answer), work.compressed(), work.TakePermit());
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
