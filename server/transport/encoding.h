// The compression of messages: gRPC's Content-Coding.
#ifndef QUANTD_SERVER_TRANSPORT_ENCODING_H_
#define QUANTD_SERVER_TRANSPORT_ENCODING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/memory/buffer.h"

namespace quantd::transport {

enum class Encoding : uint8_t { kIdentity, kDeflate, kGzip };

// The encodings that the server accepts, as the value of grpc-accept-encoding.
inline constexpr absl::string_view kEncodings = "identity,deflate,gzip";

// nullopt: unknown.
std::optional<Encoding> ParseEncoding(absl::string_view name);
absl::string_view NameOf(Encoding encoding);
// The values of --compress_answers, and of a call's
// quantd-compress-answers.
inline constexpr std::array<std::pair<absl::string_view, Encoding>, 3> kCompressions = {
    {{"none", Encoding::kIdentity}, {"gzip", Encoding::kGzip}, {"deflate", Encoding::kDeflate}}};
// nullopt: unknown.
std::optional<Encoding> ParseCompression(absl::string_view name);

// Our encodings that a client's grpc-accept-encoding names, and identity, which all clients accept.
class Encodings {
 public:
  static Encodings Parse(absl::string_view names);
  bool Has(Encoding encoding) const { return (bits_ >> static_cast<int>(encoding) & 1) != 0; }
  // gzip if the client accepts it, else deflate, else identity.
  Encoding best() const;

 private:
  uint8_t bits_ = 1 << static_cast<int>(Encoding::kIdentity);
};

// The window bits that zlib needs for an encoding. REQUIRES: not kIdentity.
constexpr int WindowBits(Encoding encoding) { return encoding == Encoding::kGzip ? 15 + 16 : 15; }

// ---- Compressing responses. This takes 6 to 20 ns per byte, so it is a computation that
// needs a core, and is not done on the thread that leads a loop.

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

#endif  // QUANTD_SERVER_TRANSPORT_ENCODING_H_
