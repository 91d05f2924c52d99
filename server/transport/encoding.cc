#include "server/transport/encoding.h"

#include <zlib.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace quantd::transport {
namespace {

// zlib's fastest level: codes of normal values shrink to 0.84 at 160 MB/s and FLOATs of 256 values
// to 0.4 at 100 MB/s; level 6 gives 0.84 and 0.34, at a third and a seventh of the rate.
constexpr int kDeflateLevel = 1;
constexpr int kDeflateMemoryLevel = 8;
// zlib's memory for that (zconf.h): 2^(15 + 2) + 2^(8 + 9), and its own state.
constexpr uint64_t kDeflateStateBytes = (256 << 10) + (16 << 10);

constexpr size_t kDeflateSlice = 64 << 10;
// After this many bytes it is decided whether they shrink, by at least a sixteenth.
constexpr size_t kDeflateProbe = 512 << 10;

bool Shrinks(const z_stream& stream) {
  return stream.total_in < kDeflateProbe ||
         stream.total_out < stream.total_in - stream.total_in / 16;
}

// Returns false if the bytes should be sent as they are.
bool DeflateAll(z_stream& stream, absl::Span<const uint8_t> bytes,
                absl::FunctionRef<bool()> interrupted) {
  stream.next_in = const_cast<uint8_t*>(bytes.data());
  for (size_t left = bytes.size(); left != 0;) {
    const size_t slice = std::min(left, kDeflateSlice);
    left -= slice;
    stream.avail_in = static_cast<uInt>(slice);
    const int result = deflate(&stream, left == 0 ? Z_FINISH : Z_NO_FLUSH);
    if (left == 0) return result == Z_STREAM_END;
    if (result != Z_OK || stream.avail_in != 0 || !Shrinks(stream) || interrupted()) return false;
  }
  return false;
}

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

std::optional<Encoding> ParseCompression(absl::string_view name) {
  for (const auto& [known, encoding] : kCompressions) {
    if (name == known) return encoding;
  }
  return std::nullopt;
}

Encodings Encodings::Parse(absl::string_view names) {
  Encodings encodings;
  for (const absl::string_view name : absl::StrSplit(names, ',')) {
    const auto encoding = ParseEncoding(absl::StripAsciiWhitespace(name));
    if (encoding.has_value()) encodings.bits_ |= 1 << static_cast<int>(*encoding);
  }
  return encodings;
}

Encoding Encodings::best() const {
  if (Has(Encoding::kGzip)) return Encoding::kGzip;
  return Has(Encoding::kDeflate) ? Encoding::kDeflate : Encoding::kIdentity;
}

uint64_t DeflateMemoryBytes(size_t size, size_t room) {
  return memory::Pool::Footprint(room + size) + kDeflateStateBytes;
}

memory::Piece Deflate(Encoding encoding, absl::Span<const uint8_t> bytes, Contents contents,
                      size_t room, memory::Pool& pool, absl::FunctionRef<bool()> interrupted) {
  memory::Piece piece;
  if (bytes.empty()) return piece;
  z_stream stream = {};
  const int strategy = contents == Contents::kCodes ? Z_RLE : Z_DEFAULT_STRATEGY;
  if (deflateInit2(&stream, kDeflateLevel, Z_DEFLATED, WindowBits(encoding), kDeflateMemoryLevel,
                   strategy) != Z_OK) {
    return piece;
  }
  // At most the original size minus a byte.
  piece.buffer = pool.Allocate(room + bytes.size());
  if (piece.buffer.data() != nullptr) {
    stream.next_out = piece.buffer.data() + room;
    stream.avail_out = static_cast<uInt>(bytes.size() - 1);
    if (DeflateAll(stream, bytes, interrupted)) {
      piece.begin = piece.buffer.data() + room;
      piece.size = stream.total_out;
    }
  }
  deflateEnd(&stream);
  if (piece.begin == nullptr) piece.buffer = memory::Buffer();
  return piece;
}

}  // namespace quantd::transport
