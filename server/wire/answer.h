// Answer -> bytes out. One allocation of the right size, in which kernels write the tensors in
// place.
//
//   Answer answer(operation.answer_layout());
//   absl::Status status = operation.Execute(executor, interrupted, answer.contents());
//   grpc::ByteBuffer out = std::move(answer).Finish();            // of a call
//   grpc::ByteBuffer out = std::move(answer).FinishItem(item.id);  // of a stream
#ifndef QUANTD_SERVER_WIRE_ANSWER_H_
#define QUANTD_SERVER_WIRE_ANSWER_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "server/wire/answer_layout.h"

namespace quantd::wire {

// Movable: contents() stay where they are. Not safe to be used from two threads, but the spans in
// contents() may be written from any.
class Answer {
 public:
  // Allocates AnswerMemoryBytes(layout). REQUIRES: MaxEncodedBytes(layout) < 2 GiB.
  explicit Answer(const AnswerLayout& layout);
  Answer(Answer&&) noexcept;
  Answer& operator=(Answer&&) noexcept;
  ~Answer();

  AnswerContents& contents();

  // The message QuantizeResponse (or of the layout's method), in one slice, without a copy.
  // REQUIRES: contents() are written.
  grpc::ByteBuffer Finish() &&;

  // The message StreamResponse that holds it.
  grpc::ByteBuffer FinishItem(uint64_t id) &&;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The message StreamResponse that says why the item `id` failed. REQUIRES: !status.ok().
grpc::ByteBuffer EncodeItemError(uint64_t id, const absl::Status& status);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_ANSWER_H_
