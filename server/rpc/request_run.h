// One request on its way: bytes in -> decode -> admit -> plan -> execute -> encode -> bytes out.
//
// The steps of a call and of a stream's item are the same; serve_unary.cc and serve_stream.cc call
// them one after another and await what must be awaited. Each step but the first needs the one
// before it to have succeeded. A RequestRun lives in the frame of its call and stays where it is;
// it is made and ends on the thread that leads the stream's loop.
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
#include "server/operations/operation.h"
#include "server/rpc/arriving_range.h"
#include "server/rpc/backend.h"
#include "server/rpc/compression.h"
#include "server/rpc/disk_task.h"
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
  // `timeline`: where to write down when it did what; null: nowhere.
  RequestRun(Backend& backend, transport::ServerCall& stream, Timeline* timeline)
      : backend_(backend),
        stream_(stream),
        timeline_(timeline),
        disk_task_(backend, stream),
        reservation_(backend, stream),
        compression_(backend, stream) {}
  RequestRun(const RequestRun&) = delete;
  RequestRun& operator=(const RequestRun&) = delete;

  // These nine on the thread that leads the stream's loop.

  // Reads the request: completes `read` as ServerCall::Read does.
  void Read(wire::Method method, loop::Event& read);
  // Looks at what came: a call's request, or (kStream) an item.
  absl::Status Begin(wire::Method method);
  // Whether it names a stored set that is not in memory. Then the set must be found on the disk:
  // when FindSet is OK, `found` completes, what with is for SetFound to say.
  bool lacks_set() const { return !rest_.parameters.empty() && set_ == nullptr && has_sets(); }
  absl::Status FindSet(loop::Event& found);
  absl::Status SetFound(bool ok);
  // Decodes it, unless its parts beside the tensors are large: then Execute does, with memory set
  // aside for it.
  absl::Status Decode();
  // Asks for the memory that all the rest takes. When it is OK, `admitted` completes: what with is
  // for Admitted to say.
  absl::Status Admit(loop::Event& admitted);
  // Whether it must wait for others to give theirs back. Then the caller must not hold a permit.
  bool queued() const { return reservation_.queued(); }
  absl::Status Admitted(bool granted) { return granted ? absl::OkStatus() : InterruptedStatus(); }
  // What it holds of a request that has failed so far, which nothing stands for once the stream's
  // message is Taken.
  void DropRequest();
  // Asks for a core, unless the work is short. When it is OK, `scheduled` completes, on this thread
  // or on another one: what with is for MayCompute to say.
  absl::Status TakeCore(loop::Event& scheduled);

  // On whatever thread `scheduled` completed. Gives up the lead of the loop, if it is this thread's
  // and the work is long.
  absl::Status MayCompute(bool granted);
  // Plans and runs the kernel, unless the client went away before, encodes the response, and lets
  // go of the request. Of a large response whose kernel is fast it only plans: the kernel runs as
  // the response is sent.
  absl::Status Execute();
  // Sends the response of a call; completes `written` as ServerCall::Write does.
  void Write(loop::Event& written);
  // Whether its kernel runs until `written` completes.
  bool made_as_sent() const { return made_as_sent_; }
  // Of an item: the response, or why there is none.
  memory::Piece EncodeItem(const absl::Status& status);
  // Whether what it returns is compressed.
  bool compressed() const { return compression_.done(); }

  // The memory; hold it until the response is written.
  admission::Permit TakePermit() { return std::move(reservation_.permit()); }

 private:
  using Clock = loop::Clock;
  absl::Status InterruptedStatus() const;
  void NoteQueue(Clock::duration waited) const {
    if (timeline_ != nullptr) timeline_->Add(Phase::kQueue, waited - decoding_);
  }
  bool has_sets() const { return backend_.parameters != nullptr; }
  absl::Status DecodeNow();
  absl::Status DecodeMessage();
  uint64_t ExpectResponse();
  absl::Status Plan();
  absl::Status Run();
  bool IsMadeAsSent() const;
  RangeSoFar KnownRange() const;
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
  ArrivingRange arriving_;  // of a DynamicQuantize
  Timeline* const timeline_;
  Clock::time_point begin_;  // the arrival of the call or the item
  Clock::duration decoding_{};
  wire::Method method_ = wire::Method::kStream;
  wire::Rest rest_;
  std::optional<wire::Request> request_;
  SharedTensors shared_;  // of the request
  // What a look at the disk comes to, which may be after the call has given up.
  using FoundSet = absl::StatusOr<stored_parameters::SetPointer>;
  DiskTask disk_task_;
  std::shared_ptr<FoundSet> found_;
  stored_parameters::SetPointer set_;
  std::optional<operations::Operation> operation_;
  operations::CostKind cost_;
  std::chrono::nanoseconds estimate_{};
  Reservation reservation_;
  std::optional<wire::Response> response_;
  Clock::time_point kernel_began_;  // 0: not reached
  Clock::duration computing_{};     // so far
  Clock::duration work_{};          // the same, of all cores together, with what encoding took
  // Of a response that is made as it is sent: what follows y, and how many elements are made.
  bool made_as_sent_ = false;
  absl::Span<uint8_t> behind_y_;
  int64_t made_elements_ = 0;
  Compression compression_;
  memory::Piece piece_;  // the response as bytes
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_REQUEST_RUN_H_
