// One request on its way: bytes in -> decode -> plan -> admit -> execute -> encode -> bytes out.
//
// The steps of a call and of a stream's item are the same; unary.cc and stream.cc call them one
// after another and await what must be awaited. Each step but the first needs the one before it to
// have succeeded. A Work lives in the frame of its call and stays where it is.
#ifndef QUANTD_SERVER_RPC_WORK_H_
#define QUANTD_SERVER_RPC_WORK_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "server/operations/operation.h"
#include "server/rpc/backend.h"
#include "server/rpc/event.h"
#include "server/wire/answer.h"
#include "server/wire/decode.h"

namespace quantd::rpc {

class Work {
 public:
  // `done` completes when the client no longer waits for an answer.
  Work(Backend& backend, const grpc::ServerContext& context, const Event& done)
      : backend_(backend), context_(context), done_(done) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Takes the message out of `bytes_in`, which is empty then. `taken` completes at once for a small
  // one, and on a thread of the pool for a large one, because the polling thread must not be kept
  // from other calls.
  void Take(grpc::ByteBuffer& bytes_in, Event& taken);

  absl::Status Decode(wire::Method method);
  absl::Status DecodeItem();
  absl::Status Plan();

  // Whether the work must leave the polling thread. REQUIRES: planned, not executed.
  bool large() const { return operation_->work_bytes() > backend_.inline_bytes; }

  // Whether it has left it.
  bool on_pool() const { return on_pool_; }

  // Asks for the memory that the work takes. When it is OK, `admitted` completes with the permit,
  // on a thread of the pool if the work is large.
  absl::Status Admit(Event& admitted);
  // Whether it must wait for others to give theirs back. Then the caller must not hold a permit.
  bool queued() const { return queued_; }

  // Runs the kernel, unless the client went away before, and lets go of the request.
  absl::Status Execute();

  grpc::ByteBuffer Encode() { return std::move(*answer_).Finish(); }
  // Of an item: the answer, or why there is none.
  grpc::ByteBuffer EncodeItem(const absl::Status& status);

  // The memory; hold it until the answer is written.
  admission::Permit TakePermit() { return std::move(permit_); }

 private:
  using Clock = std::chrono::steady_clock;
  void MoveToPool(Event& moved);
  void Count(Clock::duration kernel_time);
  absl::Status TakeSlices();
  // OK, or why the client does not wait any more.
  absl::Status Interruption() const;

  Backend& backend_;
  const grpc::ServerContext& context_;
  const Event& done_;
  uint64_t id_ = 0;
  grpc::ByteBuffer message_;
  wire::SliceList slices_;
  std::optional<wire::Request> request_;
  std::optional<operations::Operation> operation_;
  Clock::time_point admit_time_;
  bool queued_ = false;
  bool on_pool_ = false;  // or on the way to it
  admission::Permit permit_;
  std::optional<wire::Answer> answer_;
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_WORK_H_
