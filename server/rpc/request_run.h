// The steps of one request: bytes in -> decode -> admit -> plan -> execute -> encode -> bytes out.
//
// The steps of a call and of a stream's item are the same; serve_unary.cc and serve_stream.cc call
// them one after another and await their events. Each step but the first requires that the previous
// one has succeeded. A RequestRun lives in the frame of its call and does not move; it is made and
// destroyed on the thread that leads the stream's loop.
#ifndef QUANTD_SERVER_RPC_REQUEST_RUN_H_
#define QUANTD_SERVER_RPC_REQUEST_RUN_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/operations/costs.h"
#include "server/operations/operation.h"
#include "server/rpc/backend.h"
#include "server/rpc/compression.h"
#include "server/rpc/reservation.h"
#include "server/rpc/shared_tensors.h"
#include "server/rpc/timeline.h"
#include "server/transport/server_call.h"
#include "server/wire/decode.h"
#include "server/wire/encode.h"

namespace quantd::rpc {

// For tests: called before every kernel, on its thread. Null in a server.
inline std::atomic<void (*)()> before_kernel_for_testing{nullptr};

class RequestRun final : private transport::MessageSource {
 public:
  // `timeline` records when each step happened; may be null.
  RequestRun(Backend& backend, transport::ServerCall& stream, Timeline* timeline)
      : backend_(backend),
        stream_(stream),
        timeline_(timeline),
        reservation_(backend, stream),
        compression_(backend, stream) {}
  RequestRun(const RequestRun&) = delete;
  RequestRun& operator=(const RequestRun&) = delete;

  // The next seven are called on the thread that leads the stream's loop.

  // Reads the request. `read` completes as for ServerCall::Read.
  void Read(loop::Event& read) { stream_.Read(message_, read); }
  // Decodes the received message, a call's request or (kStream) an item, unless its fields other
  // than the tensors are large: then Execute decodes it, with memory reserved for it.
  absl::Status Decode(wire::Method method);
  // Asks for the memory of all remaining steps. If it returns OK, `admitted` completes; pass its
  // value to Admitted.
  absl::Status Admit(loop::Event& admitted);
  // Whether it waits for other requests to return memory. The caller must not hold a permit then.
  bool queued() const { return reservation_.queued(); }
  absl::Status Admitted(bool granted) { return granted ? absl::OkStatus() : InterruptedStatus(); }
  // Frees what it holds of a failed request, because no memory is reserved for it after the
  // stream's message is Taken.
  void DropRequest();
  // Asks for a core, unless the work is short. If it returns OK, `scheduled` completes, on this
  // thread or another; pass its value to MayCompute.
  absl::Status TakeCore(loop::Event& scheduled);

  // Called on the thread on which `scheduled` completed. Hands over the lead of the loop if this
  // thread leads it and the work is long.
  absl::Status MayCompute(bool granted);
  // Plans the request, runs the kernel unless the client has gone away, encodes the response, and
  // frees the request. If the response is large and its kernel is fast, Execute only plans, and the
  // kernel runs while the response is sent.
  absl::Status Execute();
  // Sends the response of a call. `written` completes as for ServerCall::Write.
  void Write(loop::Event& written);
  // Whether its kernel may run until `written` completes.
  bool made_as_sent() const { return made_as_sent_; }
  // The response of an item, or its error.
  memory::Piece EncodeItem(const absl::Status& status);
  // Whether the result of EncodeItem is compressed.
  bool compressed() const { return compression_.done(); }

  // The memory's permit; keep it until the response is written.
  admission::Permit TakePermit() { return std::move(reservation_.permit()); }

 private:
  using Clock = loop::Clock;
  absl::Status InterruptedStatus() const;
  void NoteQueue(Clock::duration waited) const {
    if (timeline_ != nullptr) timeline_->Add(Phase::kQueue, waited - decoding_);
  }
  absl::Status DecodeNow(wire::BetweenPieces between);
  absl::Status DecodeMessage(wire::BetweenPieces between);
  uint64_t ExpectResponse();
  absl::Status Plan();
  absl::Status Run();
  // Called between pieces of work: lets others compute, and returns whether to stop.
  bool Interrupted();
  // A clock that stops while this thread stands, for work on one core.
  Clock::time_point WorkNow() const { return Clock::now() - reservation_.stood(); }
  bool IsMadeAsSent() const;
  memory::Piece MakeMore() override;
  uint64_t SavedBytes() const;
  absl::Status CheckMemory(uint64_t needed);
  void Computed(const absl::Status& status);
  const Executor& TakeCores();
  void EndKernel();
  absl::Status Encode();
  void Compress();
  void Count();

  Backend& backend_;
  transport::ServerCall& stream_;
  transport::Message message_;
  Timeline* const timeline_;
  Clock::time_point begin_;  // the arrival of the call or the item
  Clock::duration decoding_{};
  wire::Method method_ = wire::Method::kStream;
  wire::Rest rest_;
  // What is needed until the response is computed.
  struct Work {
    explicit Work(wire::Request decoded) : request(std::move(decoded)) {}
    wire::Request request;
    SharedTensors shared;  // of the request
    std::optional<operations::Operation> operation;
  };
  std::unique_ptr<Work> work_;
  operations::Cost cost_;
  Reservation reservation_;
  std::optional<wire::Response> response_;
  Clock::time_point kernel_began_;  // 0: not reached
  Clock::duration computing_{};     // so far
  // For a response that is made while it is sent: what follows y, and the number of elements made.
  bool made_as_sent_ = false;
  absl::Span<uint8_t> behind_y_;
  int64_t made_elements_ = 0;
  Compression compression_;
  memory::Piece piece_;  // the response as bytes
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_REQUEST_RUN_H_
