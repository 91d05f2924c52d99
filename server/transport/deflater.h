// Answers, compressed (grpc-encoding). That takes some 6 to 20 ns a byte, so it is a computation:
// on a core, not on the thread that leads a loop.
#ifndef QUANTD_SERVER_TRANSPORT_DEFLATER_H_
#define QUANTD_SERVER_TRANSPORT_DEFLATER_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "server/memory/buffer.h"
#include "server/transport/encoding.h"

namespace quantd::transport {

// What the bytes are, most of them.
enum class Contents : uint8_t {
  // Of a byte or less: coded by how often each comes, since strings of them hardly come again.
  kCodes,
  // Wider, or text: what came before is looked for.
  kNumbers,
};

// Most bytes that Deflate allocates, for `size` of them behind `room`.
uint64_t DeflateMemoryBytes(size_t size, size_t room);

// `bytes` compressed, with `room` bytes before them. An empty piece when they should be sent as
// they are: they do not get smaller (of a long one that is said after its first half MiB), the
// system has no memory, or `interrupted` said so, which is asked every 64 KiB. REQUIRES: not
// kIdentity; fewer than 4 GiB.
memory::Piece Deflate(Encoding encoding, absl::Span<const uint8_t> bytes, Contents contents,
                      size_t room, memory::Pool& pool, absl::FunctionRef<bool()> interrupted);

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_DEFLATER_H_
