// Response -> bytes out. One allocation of the right size, in which kernels write the tensors in
// place.
//
//   Response response(operation.response_layout(), pool);
//   if (!response.has_memory()) ...
//   absl::Status status = operation.Execute(executor, interrupted, response.contents());
//   memory::Piece out = std::move(response).Finish();             // of a call
//   memory::Piece out = std::move(response).FinishItem(item.id);  // of a stream
//
// Before each message there is room for kRoomBefore bytes of whoever sends it.
#ifndef QUANTD_SERVER_WIRE_ENCODE_H_
#define QUANTD_SERVER_WIRE_ENCODE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "server/memory/buffer.h"
#include "server/wire/response_layout.h"

namespace google::protobuf {
class MessageLite;
}  // namespace google::protobuf

namespace quantd::wire {

inline constexpr size_t kRoomBefore = 8;

// Movable: contents() stay where they are. Not safe to be used from two threads, but the spans in
// contents() may be written from any.
class Response {
 public:
  // Allocates ResponseMemoryBytes(layout). REQUIRES: MaxEncodedBytes(layout) < 2 GiB; the pool
  // outlives it. Without y (kRaw), what Finish returns lacks its bytes, and contents().y is empty
  // and begins where they belong.
  Response(const ResponseLayout& layout, memory::Pool& pool, bool without_y = false);
  Response(Response&&) noexcept;
  Response& operator=(Response&&) noexcept;
  ~Response();

  // False when the system had no memory for it: then it is of no use.
  bool has_memory() const;

  ResponseContents& contents();
  const ResponseLayout& layout() const;

  // The message QuantizeResponse (or of the layout's method), without a copy; an empty piece when
  // the system had no memory to encode it as values. REQUIRES: contents() are written.
  memory::Piece Finish() &&;

  // The message StreamResponse that holds it.
  memory::Piece FinishItem(uint64_t id) &&;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The message StreamResponse that says why the item `id` failed. REQUIRES: !status.ok().
memory::Piece EncodeItemError(uint64_t id, const absl::Status& status, memory::Pool& pool);

// Room for a message of `size` bytes, behind kRoomBefore; an empty piece when the system had no
// memory.
memory::Piece MakePiece(size_t size, memory::Pool& pool);
// A small message as it is, in such a piece.
memory::Piece Serialize(const google::protobuf::MessageLite& message, memory::Pool& pool);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_ENCODE_H_
