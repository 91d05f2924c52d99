// What a request has reserved: memory and cores, which it shares with others. It asks, waits among
// them, and gives up when its time is over or its call is interrupted.
//
//   Reservation reservation(backend, stream);
//   status = reservation.AskForMemory(bytes, 0, admitted);
//   const bool granted = co_await admitted;      // if it is OK
//   if (!granted) status = InterruptedStatus(backend, stream);
//   ...                                          // the same with AskForCore
//   const Executor& executor = reservation.TakeCores(4);
//   ...                                          // compute
//   reservation.GiveCores();
//
// Lives in the frame of its call and stays where it is.
#ifndef QUANTD_SERVER_RPC_RESERVATION_H_
#define QUANTD_SERVER_RPC_RESERVATION_H_

#include <chrono>
#include <cstdint>
#include <new>

#include "absl/status/status.h"
#include "server/rpc/backend.h"
#include "server/transport/server_call.h"
#include "server/wire/split.h"

namespace quantd::rpc {

// A core more is worth its while for so much run. oneTBB's threads look for more for a millisecond
// after they have worked, when the response is sent and its receiver, often on the same machine,
// wants that core: below 2 ms that costs more than it gives.
inline constexpr std::chrono::microseconds kWorthACore{2000};

class Reservation final : private transport::Cancellable, private loop::Timer {
 public:
  Reservation(Backend& backend, transport::ServerCall& stream)
      : backend_(backend), stream_(stream) {}
  // On the thread that leads the stream's loop.
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // These two on the thread that leads the stream's loop. When it is OK, the event completes, the
  // second one on this thread or on another: with false when there is nothing to be had
  // (InterruptedStatus).

  // `held`: bytes that the call holds already, and goes on holding.
  absl::Status AskForMemory(uint64_t bytes, uint64_t held, loop::Event& admitted);
  // Work that is short needs no core of its own.
  absl::Status AskForCore(std::chrono::nanoseconds estimate, loop::Event& granted);

  // Whether it must wait for others to give theirs back.
  bool queued() const { return queued_; }
  // What AskForCore's event has completed with. Gives up the lead of the loop, if it is this
  // thread's and the work is long.
  void Began(bool granted);

  // Up to `wanted` cores in all, of those that are idle, for work that has one.
  const Executor& TakeCores(int64_t wanted);
  int cores() const { return cores_; }
  void GiveCores();
  // All but one.
  void GiveSpareCores();

  admission::Permit& permit() { return permit_; }
  // From now on only the response is needed, which takes so many bytes at most. A small one keeps
  // them, but nobody from working, even if it is never read.
  void KeepForResponse(uint64_t bytes);

 private:
  void Cancel() override;  // the stream was interrupted
  void Fire() override;    // the queue timeout is over
  void StartWaiting();

  Backend& backend_;
  transport::ServerCall& stream_;
  admission::Admission::Waiting waits_for_memory_;
  loop::ComputeSlots::Waiting waits_for_core_;
  bool queued_ = false;
  int cores_ = 0;  // that it holds
  admission::Permit permit_;
};

// Why a call does not wait on: it was interrupted, or --queue_timeout is over.
absl::Status InterruptedStatus(const Backend& backend, const transport::ServerCall& stream);
// How long a request takes that is decoded when it has a core: as long as values do, if all its
// bytes are some; and never short where its tensors may lie in shared memory.
std::chrono::nanoseconds LateEstimate(const Backend& backend, const wire::Rest& rest,
                                      uint64_t message_bytes);

// The system is out of memory.
absl::Status NoMemory();

// What runs out of memory ends one call, not the process.
template <typename Step>
absl::Status CatchOutOfMemory(Step step) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_RESERVATION_H_
