// One calibration on its way: messages that add to it, then its result, then its state if that is
// wanted. Each is a round: bytes in -> decode -> admit -> compute, as RequestRun has it for a
// request; serve_calibrate.cc calls the steps one after another and awaits what must be awaited.
//
// Of the memory, a message's own ends with its reservation. What the calibrator keeps is held (see
// Admission::Hold): asked for with the first message, before there is anything to hold. A client
// that then sends nothing while others wait for memory is given up.
#ifndef QUANTD_SERVER_RPC_CALIBRATING_H_
#define QUANTD_SERVER_RPC_CALIBRATING_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "quantd/calibration.h"
#include "server/operations/costs.h"
#include "server/rpc/compression.h"
#include "server/rpc/reservation.h"
#include "server/rpc/shared_tensors.h"
#include "server/rpc/timeline.h"
#include "server/wire/calibrate.h"

namespace quantd::rpc {

// Lives in the frame of its call and stays where it is; made and ended on the thread that leads
// the stream's loop.
class Calibrating final : private loop::Timer {
 public:
  // `timeline`: where to write down when it did what; null: nowhere.
  Calibrating(Backend& backend, transport::ServerCall& stream, Timeline* timeline)
      : backend_(backend), stream_(stream), timeline_(timeline), compression_(backend, stream) {}
  ~Calibrating();
  Calibrating(const Calibrating&) = delete;
  Calibrating& operator=(const Calibrating&) = delete;

  // Whether the response is there.
  bool done() const { return phase_ == Phase::kDone; }

  // A round: these on the thread that leads the stream's loop, in this order, each only if the one
  // before it was OK.

  // Begins a reservation. True: it is a message's, which must be read to message().
  bool Next();
  transport::Message& message() { return message_; }
  // Whether there was a message; else the client has sent everything, or is gone. What is large
  // beside x is decoded only by Compute, with memory set aside for it.
  absl::Status Received(bool has_message);
  // Asks for the round's memory. When it is OK, `admitted` completes: what with is for Admitted.
  absl::Status Admit(loop::Event& admitted);
  absl::Status Admitted(bool granted);
  // What it holds of a message that has failed so far, which nothing stands for once it is Taken.
  void DropMessage();
  // Asks for a core, unless the work is short. When it is OK, `scheduled` completes, on this thread
  // or on another one: what with is for MayCompute to say.
  absl::Status TakeCore(loop::Event& scheduled);

  // On whatever thread `scheduled` completed.
  absl::Status MayCompute(bool granted);
  absl::Status Compute();

  // REQUIRES: done.
  memory::Piece TakeResponse() { return std::move(response_); }
  // Whether it is compressed.
  bool compressed() const { return compression_.done(); }

 private:
  using Clock = loop::Clock;
  enum class Phase : uint8_t { kMessages, kResult, kState, kDone };

  void Fire() override;  // the client has sent nothing for long
  absl::Status DecodeNow();
  absl::Status Prepare();
  uint64_t ExpectResponse();
  absl::Status Hold();
  absl::Status Add();
  absl::Status FindResult();
  absl::Status Finish(std::string state);
  absl::Status InterruptedStatus() const;
  int MostCores() const;
  void NoteQueue(Clock::duration waited) const;
  void Count(Clock::duration kernel_time);

  Backend& backend_;
  transport::ServerCall& stream_;
  Timeline* const timeline_;
  Phase phase_ = Phase::kMessages;
  std::optional<Calibrator> calibrator_;
  DataType output_type_ = DataType::kUint8;
  bool return_state_ = false;
  CalibrationOptions options_;
  admission::Permit held_;  // the calibrator's
  uint64_t refused_before_ = 0;

  // The round's.
  std::optional<Reservation> reservation_;
  transport::Message message_;
  wire::Rest rest_;  // of it
  Clock::time_point begin_;
  Clock::duration decoding_{};
  std::optional<wire::CalibrateMessage> request_;
  SharedTensors shared_;
  uint64_t memory_ = 0;  // of the round alone
  uint64_t keeps_ = 0;   // what the calibrator will hold after it
  uint64_t grows_ = 0;   // by so much more than now
  operations::CostKind cost_;
  std::chrono::nanoseconds estimate_{};

  admission::Permit result_permit_;
  Calibration result_;
  uint64_t state_bytes_ = 0;
  memory::Piece response_;
  Compression compression_;
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_CALIBRATING_H_
