// See encoding.h.
#include "server/transport/encoding.h"

#include <zlib.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace quantd::transport {
namespace {

// zlib's fastest: answers are small, and their clients near.
constexpr int kLevel = 1;
constexpr int kMemoryLevel = 8;

}  // namespace

std::optional<Encoding> ParseEncoding(absl::string_view name) {
  for (const Encoding encoding : {Encoding::kIdentity, Encoding::kDeflate, Encoding::kGzip}) {
    if (name == NameOf(encoding)) return encoding;
  }
  return std::nullopt;
}

absl::string_view NameOf(Encoding encoding) {
  switch (encoding) {
    case Encoding::kDeflate:
      return "deflate";
    case Encoding::kGzip:
      return "gzip";
    default:
      return "identity";
  }
}

Encoding ChooseEncoding(absl::string_view accepted) {
  Encoding best = Encoding::kIdentity;
  for (const absl::string_view name : absl::StrSplit(accepted, ',')) {
    const auto encoding = ParseEncoding(absl::StripAsciiWhitespace(name));
    if (encoding.has_value()) best = std::max(best, *encoding);
  }
  return best;
}

memory::Piece Deflate(Encoding encoding, absl::Span<const uint8_t> bytes, size_t room,
                      memory::Pool& pool) {
  memory::Piece piece;
  z_stream stream = {};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, WindowBits(encoding), kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return piece;
  }
  const size_t most = deflateBound(&stream, bytes.size());
  piece.buffer = pool.Allocate(room + most);
  if (piece.buffer.data() != nullptr) {
    stream.next_in = const_cast<uint8_t*>(bytes.data());
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = piece.buffer.data() + room;
    stream.avail_out = static_cast<uInt>(most);
    if (deflate(&stream, Z_FINISH) == Z_STREAM_END) {
      piece.begin = piece.buffer.data() + room;
      piece.size = stream.total_out;
    }
  }
  deflateEnd(&stream);
  return piece;
}

}  // namespace quantd::transport
