// Compressed messages (grpc-encoding), made what they were. A loop inflates a slice each iteration,
// so that others wait for no more than that. Peers take turns, slice by slice, by the time that
// theirs have taken; each peer's messages are inflated one after another.
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

// A message that has been begun.
struct InflateState;

// A message to inflate.
class Inflating : private loop::FairQueue::Entry {
 public:
  Inflating();

 protected:
  ~Inflating();  // REQUIRES: removed, or told

 private:
  friend class Inflater;
  // It is done: `size` bytes, or INVALID_ARGUMENT when it is no such message, RESOURCE_EXHAUSTED
  // when it holds more than it may.
  virtual void OnInflated(const absl::Status& status, memory::Buffer buffer, size_t size) = 0;

  Encoding compressed_by_ = Encoding::kIdentity;
  absl::Span<const uint8_t> compressed_;
  size_t most_inflated_ = 0;
  std::unique_ptr<InflateState> state_;
};

// Of one loop, on the thread that leads it.
class Inflater final : private loop::Posted {
 public:
  Inflater(loop::Loop& loop, memory::Pool& pool);
  ~Inflater();

  // Inflates it when its peer's before it are done, to `most` bytes at most. REQUIRES: the bytes
  // stay where they are.
  void Add(Inflating& message, uint64_t peer, Encoding encoding, absl::Span<const uint8_t> bytes,
           size_t most);
  // Does nothing when it is not here.
  void Remove(Inflating& message);

 private:
  void Run() override;
  Inflating* Next() const;
  absl::Status Begin(Inflating& message);
  // Inflates a slice of it. False: that was the last one, or `status` is an error.
  static bool Go(const Inflating& message, absl::Status& status);
  std::unique_ptr<InflateState> TakeOut(Inflating& message);

  loop::Loop& loop_;
  memory::Pool& pool_;
  loop::FairQueue waiting_;
  size_t begun_ = 0;  // of those that wait
  bool posted_ = false;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_INFLATER_H_
