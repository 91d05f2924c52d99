// A calibration in progress: messages add to it, then it makes the result and, if wanted, the
// state. Each of these is a round: bytes in -> decode -> admit -> compute, like the steps of
// RequestRun; serve_calibrate.cc calls the steps one after another and awaits their events.
//
// A message's memory is returned with its reservation. The calibrator's memory is held (see
// Admission::Hold); it is asked for with the first message, before there is anything to hold. A
// client that then sends nothing while others wait for memory is given up.
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

// Lives in the frame of its call and does not move. Made and destroyed on the thread that leads the
// stream's loop.
class Calibrating final : private loop::Timer {
 public:
  // `timeline` records when each step happened; may be null.
  Calibrating(Backend& backend, transport::ServerCall& stream, Timeline* timeline)
      : backend_(backend), stream_(stream), timeline_(timeline), compression_(backend, stream) {}
  ~Calibrating();
  Calibrating(const Calibrating&) = delete;
  Calibrating& operator=(const Calibrating&) = delete;

  // Whether the response is ready.
  bool done() const { return phase_ == Phase::kDone; }

  // The steps of a round, called on the thread that leads the stream's loop, in this order. Each
  // step requires that the previous one was OK.

  // Begins a reservation. True: it is for a message, which must be read to message().
  bool Next();
  transport::Message& message() { return message_; }
  // `has_message`: false if the client has sent everything, or is gone. Fields other than x that
  // are large are decoded by Compute, with memory reserved for them.
  absl::Status Received(bool has_message);
  // Asks for the round's memory. If it returns OK, `admitted` completes; pass its value to
  // Admitted.
  absl::Status Admit(loop::Event& admitted);
  absl::Status Admitted(bool granted);
  // Frees what it holds of a failed message, because no memory is reserved for it after Taken.
  void DropMessage();
  // Asks for a core, unless the work is short. If it returns OK, `scheduled` completes, on this
  // thread or another; pass its value to MayCompute.
  absl::Status TakeCore(loop::Event& scheduled);

  // Called on the thread on which `scheduled` completed.
  absl::Status MayCompute(bool granted);
  absl::Status Compute();

  // REQUIRES: done().
  memory::Piece TakeResponse() { return std::move(response_); }
  // Whether the response is compressed.
  bool compressed() const { return compression_.done(); }

 private:
  using Clock = loop::Clock;
  enum class Phase : uint8_t { kMessages, kResult, kState, kDone };

  void Fire() override;  // the client has sent nothing for too long
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

  // The current round's.
  std::optional<Reservation> reservation_;
  transport::Message message_;
  wire::Rest rest_;  // of the message
  Clock::time_point begin_;
  Clock::duration decoding_{};
  std::optional<wire::CalibrateMessage> request_;
  SharedTensors shared_;
  uint64_t memory_ = 0;  // of the round alone
  uint64_t keeps_ = 0;   // bytes that the calibrator will hold after the round
  uint64_t grows_ = 0;   // the increase compared to now
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
