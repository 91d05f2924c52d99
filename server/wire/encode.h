// Encodes a response: one allocation of the exact size, in which kernels write the tensors in
// place.
//
//   Response response(operation.response_layout(), pool);
//   if (!response.has_memory()) ...
//   absl::Status status = operation.Execute(executor, interrupted, response.contents());
//   memory::Piece out = std::move(response).Finish();             // of a call
//   memory::Piece out = std::move(response).FinishItem(item.id);  // of a stream
//
// Each message has kRoomBefore bytes of room before it, for the sender.
#ifndef QUANTD_SERVER_WIRE_ENCODE_H_
#define QUANTD_SERVER_WIRE_ENCODE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/memory/buffer.h"
#include "server/wire/response_layout.h"

namespace google::protobuf {
class MessageLite;
}  // namespace google::protobuf

namespace quantd::wire {

inline constexpr size_t kRoomBefore = 8;

// Movable: contents() keep their addresses. For one thread at a time, but the spans in contents()
// may be written from any thread.
class Response {
 public:
  // Allocates ResponseMemoryBytes(layout). REQUIRES: MaxEncodedBytes(layout) < 2 GiB; the pool
  // outlives it. `without_y` (kRaw only): the result of Finish lacks the bytes of y, and
  // contents().y is empty and begins where they belong.
  Response(const ResponseLayout& layout, memory::Pool& pool, bool without_y = false);
  Response(Response&&) noexcept;
  Response& operator=(Response&&) noexcept;
  ~Response();

  // False: the system was out of memory, and the response can't be used.
  bool has_memory() const;

  ResponseContents& contents();
  const ResponseLayout& layout() const;

  // The message QuantizeResponse (or that of the layout's method), without a copy; an empty piece
  // if the system had no memory to encode it as values, which takes long: `between` is called
  // between pieces of that. REQUIRES: contents() are written.
  using Between = absl::FunctionRef<void()>;
  memory::Piece Finish(Between between = [] {}) &&;

  // The message StreamResponse that contains the response.
  memory::Piece FinishItem(uint64_t id, Between between = [] {}) &&;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The message StreamResponse that says why the item `id` failed. REQUIRES: !status.ok().
memory::Piece EncodeItemError(uint64_t id, const absl::Status& status, memory::Pool& pool);

// Room for a message of `size` bytes, after kRoomBefore; an empty piece if the system is out of
// memory.
memory::Piece MakePiece(size_t size, memory::Pool& pool);
// A small message, serialized into such a piece.
memory::Piece Serialize(const google::protobuf::MessageLite& message, memory::Pool& pool);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_ENCODE_H_
