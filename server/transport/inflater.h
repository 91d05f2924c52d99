// Compressed messages (grpc-encoding), made what they were. A loop inflates one at a time, a slice
// each iteration, so that others wait for no more than that, and the state that it takes is one's.
// Peers take turns, by what their messages may become.
//
// How much a message may become is set aside before (admission/receiving.h), and no more is
// written: one that holds more fails.
#ifndef QUANTD_SERVER_TRANSPORT_INFLATER_H_
#define QUANTD_SERVER_TRANSPORT_INFLATER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/loop/fair_queue.h"
#include "server/loop/loop.h"
#include "server/memory/buffer.h"
#include "server/transport/encoding.h"

namespace quantd::transport {

// A message to inflate.
class Inflating : private loop::FairQueue::Entry {
 protected:
  ~Inflating() = default;  // REQUIRES: removed, or told

 private:
  friend class Inflater;
  // It is done: `size` bytes, or INVALID_ARGUMENT when it is no such message, RESOURCE_EXHAUSTED
  // when it holds more than it may.
  virtual void OnInflated(const absl::Status& status, memory::Buffer buffer, size_t size) = 0;

  Encoding compressed_by_ = Encoding::kIdentity;
  absl::Span<const uint8_t> compressed_;
  size_t most_inflated_ = 0;
};

// Of one loop, on the thread that leads it.
class Inflater final : private loop::Posted {
 public:
  Inflater(loop::Loop& loop, memory::Pool& pool);
  ~Inflater();

  // Inflates it when those before it are done, to `most` bytes at most. REQUIRES: the bytes stay
  // where they are.
  void Add(Inflating& message, uint64_t peer, Encoding encoding, absl::Span<const uint8_t> bytes,
           size_t most);
  // Does nothing when it is not here.
  void Remove(Inflating& message);

 private:
  struct State;
  void Run() override;
  // Begins with the next message.
  absl::Status Begin();
  // Inflates a slice of it. False: that was the last one, or `status` is an error.
  bool Go(absl::Status& status);

  loop::Loop& loop_;
  memory::Pool& pool_;
  loop::FairQueue waiting_;
  Inflating* current_ = nullptr;  // the one that has begun, which waits no more
  std::unique_ptr<State> state_;  // of it
  bool posted_ = false;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_INFLATER_H_
