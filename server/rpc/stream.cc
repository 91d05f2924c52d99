// A stream of requests: while item n is computed, item n + 1 is being read and the answer to item
// n - 1 is being written. A bad item is answered with an ItemError and the stream goes on.
#include <grpcpp/server_context.h>

#include "server/rpc/call_metrics.h"
#include "server/rpc/calls.h"
#include "server/rpc/event.h"
#include "server/rpc/work.h"
#include "server/wire/status_details.h"

namespace quantd::rpc {
namespace {

// The last answer, until `written` completes. Small ones wait a moment for the next, to be sent as
// one packet, where the client has several items in flight: where waiting was worth it the last
// times, and one in kTry otherwise. Never the first one: it carries the headers, and gRPC keeps
// back what it says is followed by more.
class Answer final : public HeldWrite {
 public:
  Answer(ByteStream& stream, Event& written, Queue& queue)
      : stream_(stream), written_(written), queue_(queue) {}

  // Leaves `bytes` empty.
  void Send(grpc::ByteBuffer& bytes) {
    bytes_.Swap(&bytes);
    written_.Reset();
    waits_ = bytes_.Length() <= kSmall && (credit_ > 0 || ++tries_ % kTry == 0);
    if (waits_) {
      queue_.Hold(*this);
    } else {
      Write();
    }
  }
  // Now, if it still waits.
  void Flush() {
    if (waits_ && queue_.Take(*this)) Write();
  }
  // With the next one, which is sent as soon as this one is through.
  void Join() {
    if (!waits_) return;
    if (queue_.Take(*this)) {
      credit_ = kTry;
      Write(grpc::WriteOptions().set_buffer_hint());
    } else if (credit_ > 0) {
      --credit_;
    }
  }
  void Write() override { Write(grpc::WriteOptions()); }

 private:
  static constexpr size_t kSmall = 4096;  // copying these costs less than a packet
  static constexpr int kTry = 16;

  // gRPC has its own hold on the slices: an idle stream keeps none.
  void Write(grpc::WriteOptions options) {
    grpc::ByteBuffer bytes;
    bytes.Swap(&bytes_);
    stream_.Write(bytes, options, written_.tag());
  }

  ByteStream& stream_;
  Event& written_;
  Queue& queue_;
  grpc::ByteBuffer bytes_;
  bool waits_ = false;  // or has waited and been written
  int credit_ = 0;
  int tries_ = 0;
};

}  // namespace

Call ServeStream(Calls& calls, Backend& backend, Queue& queue) {
  grpc::ServerContext context;
  ByteStream stream(&context);
  Event arrived, done, read, written, finished;
  context.AsyncNotifyWhenDone(done.tag());
  backend.service.Request(metrics::Rpc::kStream, context, stream, queue.get(), arrived.tag());
  const bool is_call = co_await arrived;
  if (!is_call) co_return;  // the server shuts down; `done` never completes
  ServeStream(calls, backend, queue);

  CallMetrics meter(backend.metrics.method(metrics::Rpc::kStream));
  absl::Status end;                // what the stream ends with
  bool reading = false;            // a read is in flight
  bool writing = false;            // a write is in flight
  admission::Permit write_permit;  // of the answer that is being written
  Answer answer(stream, written, queue);
  grpc::ByteBuffer bytes_in;
  const auto read_next = [&] {
    if (backend.draining.load(std::memory_order_relaxed)) {
      end = wire::WithReason(absl::UnavailableError("the server is draining; try another one"),
                             "DRAINING");
      return;
    }
    bytes_in.Clear();
    read.Reset();
    stream.Read(&bytes_in, read.tag());
    reading = true;
  };
  read_next();
  while (reading) {
    const bool has_item = co_await read;
    reading = false;
    if (!has_item) break;  // the client has sent everything, or is gone
    meter.Received();

    Event taken, admitted;
    Work work(backend, context, done);
    work.Take(bytes_in, taken);
    if (writing && work.on_pool()) answer.Flush();
    co_await taken;
    absl::Status status = work.DecodeItem();
    if (status.ok()) status = work.Plan();
    if (status.ok()) status = work.Admit(admitted);
    if (status.ok() && work.queued() && writing) {
      // Holding one permit while waiting for another could wait for ever.
      answer.Flush();
      writing = false;
      const bool sent = co_await written;
      if (sent) meter.Sent();
      write_permit.Release();
    }
    if (status.ok()) {
      co_await admitted;
    }
    // The next read only now: what is read without a permit is never more than one item a stream.
    // Work on the pool leaves time to read; small work is done sooner than anything arrives, and a
    // read that is posted before the write costs a packet of its own for its window.
    if (status.ok() && work.on_pool()) read_next();
    if (status.ok()) status = work.Execute();
    grpc::ByteBuffer bytes_out = work.EncodeItem(status);

    if (writing) {
      answer.Join();
      const bool sent = co_await written;
      writing = false;
      if (!sent) break;  // the client is gone
      meter.Sent();
    }
    write_permit = work.TakePermit();
    answer.Send(bytes_out);
    writing = true;
    if (!reading) read_next();
  }

  if (writing) {
    answer.Flush();
    const bool sent = co_await written;
    if (sent) meter.Sent();
  }
  write_permit.Release();
  const grpc::Status status = wire::ToGrpcStatus(end);
  meter.SetCode(status.error_code());
  stream.Finish(status, finished.tag());
  co_await finished;
  // A read that is still in flight ends with the call.
  if (reading) {
    co_await read;
  }
  co_await done;
  meter.Finish(context);
}

}  // namespace quantd::rpc
