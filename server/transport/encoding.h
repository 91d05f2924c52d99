// How messages are compressed: gRPC's Content-Coding.
#ifndef QUANTD_SERVER_TRANSPORT_ENCODING_H_
#define QUANTD_SERVER_TRANSPORT_ENCODING_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/memory/buffer.h"

namespace quantd::transport {

enum class Encoding : uint8_t { kIdentity, kDeflate, kGzip };

// What the server takes, as grpc-accept-encoding says it.
inline constexpr absl::string_view kEncodings = "identity,deflate,gzip";

// nullopt: none of these.
std::optional<Encoding> ParseEncoding(absl::string_view name);
absl::string_view NameOf(Encoding encoding);
// The one of ours that a client's grpc-accept-encoding names, gzip first; kIdentity: none.
Encoding ChooseEncoding(absl::string_view accepted);

// The window bits that zlib wants for it. REQUIRES: not kIdentity.
constexpr int WindowBits(Encoding encoding) { return encoding == Encoding::kGzip ? 15 + 16 : 15; }

// `bytes` compressed, with `room` bytes before them: for small answers, since it takes as long as
// it takes. An empty piece: the system has no memory.
memory::Piece Deflate(Encoding encoding, absl::Span<const uint8_t> bytes, size_t room,
                      memory::Pool& pool);

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_ENCODING_H_
