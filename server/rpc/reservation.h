// A request's share of memory and cores. It asks for them, waits its turn, and gives up when its
// time is over or its call is interrupted.
//
//   Reservation reservation(backend, stream);
//   status = reservation.AskForMemory(bytes, admitted);
//   const bool granted = co_await admitted;      // if the status is OK
//   if (!granted) status = InterruptedStatus(backend, stream);
//   ...                                          // the same with AskForCore
//   const Executor& executor = reservation.TakeCores(4);
//   ...                                          // compute
//   reservation.GiveCores();
//
// Lives in the frame of its call and does not move.
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

// An additional core is worthwhile for this much work. After work, oneTBB's threads look for more
// for a millisecond; at that time the response is sent, and its receiver, often on the same
// machine, needs that core. DynamicQuantize of 16 MiB, 1.9 ms on each of two cores, gains: over TCP
// it has 0.84 of the echo's rate, not 0.70, for the same CPU time.
inline constexpr std::chrono::microseconds kWorthACore{1500};

class Reservation final : private transport::Cancellable, private loop::Timer {
 public:
  Reservation(Backend& backend, transport::ServerCall& stream)
      : backend_(backend), stream_(stream) {}
  // Called on the thread that leads the stream's loop.
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // The next two are called on the thread that leads the stream's loop. If they return OK, the
  // event completes, the second one on this thread or another. It completes with false if the
  // request must give up (InterruptedStatus).

  absl::Status AskForMemory(uint64_t bytes, loop::Event& admitted);
  // Short work needs no core of its own.
  absl::Status AskForCore(std::chrono::nanoseconds estimate, loop::Event& granted);

  // Whether it waits for other requests to return memory.
  bool queued() const { return queued_; }
  // `granted`: the value of AskForCore's event. Hands over the lead of the loop if this thread
  // leads it and the work is long.
  void Began(bool granted);
  // The work begins.
  void BeginTurn(loop::Clock::time_point now) { turn_.since.store(now, std::memory_order_relaxed); }

  // Called between pieces of the work, on any of its threads: lets others compute if the work has
  // had its turn. Short work that takes long after all hands over the lead, and asks for a core.
  void LetOthers();
  // For how long its threads stood meanwhile.
  loop::Clock::duration stood() const { return turn_.stood.load(std::memory_order_relaxed); }

  // Takes idle cores until the request has up to `wanted`. REQUIRES: it has one.
  const Executor& TakeCores(int64_t wanted);
  int cores() const { return cores_; }
  void GiveCores();
  // Returns all cores but one.
  void GiveSpareCores();

  admission::Permit& permit() { return permit_; }
  // From now on only the response is needed, of at most `bytes`. It keeps its memory but blocks no
  // other request, even if the client never reads it.
  void KeepForResponse(uint64_t bytes);

 private:
  void Cancel() override;  // the stream was interrupted
  void Fire() override;    // the queue timeout has passed
  void StartWaiting();

  Backend& backend_;
  transport::ServerCall& stream_;
  admission::Admission::Waiting waits_for_memory_;
  scheduling::ComputeSlots::Waiting waits_for_core_;
  scheduling::ComputeSlots::Turn turn_;
  uint64_t estimate_ = 0;  // in nanoseconds
  bool queued_ = false;
  int cores_ = 0;  // held by the request
  admission::Permit permit_;
};

// Why a call stops waiting: it was interrupted, or --queue_timeout has passed.
absl::Status InterruptedStatus(const Backend& backend, const transport::ServerCall& stream);
// The estimate for a request that is decoded after it has a core: as if all its bytes were values.
// It is never short if the request's tensors may be in shared memory.
std::chrono::nanoseconds LateEstimate(const Backend& backend, const wire::Rest& rest,
                                      uint64_t message_bytes);

// The system is out of memory.
absl::Status NoMemory();

// Running out of memory ends one call, not the process.
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
