// Compresses responses (grpc-encoding). This takes 6 to 20 ns per byte, so it is a computation that
// needs a core, and is not done on the thread that leads a loop.
#ifndef QUANTD_SERVER_TRANSPORT_DEFLATER_H_
#define QUANTD_SERVER_TRANSPORT_DEFLATER_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "server/memory/buffer.h"
#include "server/transport/encoding.h"

namespace quantd::transport {

// What most of the bytes are.
enum class Contents : uint8_t {
  // Elements of a byte or less. Only runs are searched for (Z_RLE): strings rarely repeat.
  kCodes,
  // Wider elements, or text: repeated strings are searched for.
  kNumbers,
};

// The most bytes that Deflate allocates, for `size` bytes after `room`.
uint64_t DeflateMemoryBytes(size_t size, size_t room);

// Compresses `bytes`, with `room` bytes before the result. Returns an empty piece if the bytes
// should be sent as they are: they do not get smaller (for long ones this is decided after the
// first half MiB), the system is out of memory, or `interrupted`, which is called every 64 KiB,
// returned true. REQUIRES: not kIdentity; fewer than 4 GiB.
memory::Piece Deflate(Encoding encoding, absl::Span<const uint8_t> bytes, Contents contents,
                      size_t room, memory::Pool& pool, absl::FunctionRef<bool()> interrupted);

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_DEFLATER_H_
