// Decompresses messages (grpc-encoding). A loop inflates one slice per iteration, so that other
// work waits for no more than that. Peers take turns, slice by slice, by the time that their slices
// have taken; the messages of one peer are inflated one after another.
//
// Memory for the size that a message may have is reserved before (admission/receiving.h). No more
// is written: a message that contains more fails.
#ifndef QUANTD_SERVER_TRANSPORT_INFLATER_H_
#define QUANTD_SERVER_TRANSPORT_INFLATER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/loop/loop.h"
#include "server/memory/buffer.h"
#include "server/scheduling/fair_queue.h"
#include "server/transport/encoding.h"

namespace quantd::transport {

// The state of a message whose inflation has begun.
struct InflateState;

// A message to inflate.
class Inflating : private scheduling::FairQueue::Entry {
 public:
  Inflating();

 protected:
  ~Inflating();  // REQUIRES: removed, or OnInflated was called

 private:
  friend class Inflater;
  // The inflation has ended: with `size` bytes, INVALID_ARGUMENT if the message is not valid, or
  // RESOURCE_EXHAUSTED if it contains more than it may.
  virtual void OnInflated(const absl::Status& status, memory::Buffer buffer, size_t size) = 0;

  Encoding compressed_by_ = Encoding::kIdentity;
  absl::Span<const uint8_t> compressed_;
  size_t most_inflated_ = 0;
  std::unique_ptr<InflateState> state_;
};

// Belongs to one loop; used on the thread that leads it.
class Inflater final : private loop::Posted {
 public:
  Inflater(loop::Loop& loop, memory::Pool& pool);
  ~Inflater();

  // Inflates `bytes` after the earlier messages of the same peer, to at most `most` bytes.
  // REQUIRES: the bytes do not move.
  void Add(Inflating& message, uint64_t peer, Encoding encoding, absl::Span<const uint8_t> bytes,
           size_t most);
  // Does nothing if the message is not in the queue.
  void Remove(Inflating& message);

 private:
  void Run() override;
  Inflating* Next() const;
  absl::Status Begin(Inflating& message);
  // Inflates a slice of the message. False: it was the last one, or `status` is an error.
  static bool Go(const Inflating& message, absl::Status& status);
  std::unique_ptr<InflateState> TakeOut(Inflating& message);

  loop::Loop& loop_;
  memory::Pool& pool_;
  scheduling::FairQueue waiting_;
  size_t begun_ = 0;  // the number of waiting messages that have begun
  bool posted_ = false;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_INFLATER_H_
