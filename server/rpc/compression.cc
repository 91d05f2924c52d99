#include "server/rpc/compression.h"

#include <utility>

namespace quantd::rpc {
namespace {

using loop::Clock;
using transport::Encoding;

// zlib's time per byte that does not repeat: see tests/bench/README.md.
constexpr std::chrono::nanoseconds kEachByte{10};

}  // namespace

void MayCompress(const Backend& backend, transport::ServerCall& stream) {
  const transport::Head& head = stream.head();
  const Encoding wanted = head.responses().value_or(backend.compress_answers);
  if (wanted != Encoding::kIdentity && head.accepts().Has(wanted)) stream.SetEncoding(wanted);
}

uint64_t Compression::Expect(uint64_t most_bytes) {
  const bool may = stream_.out_encoding() != Encoding::kIdentity;
  bytes_ = may && most_bytes >= backend_.compress_answers_from ? most_bytes : 0;
  return bytes_ == 0 ? 0 : transport::DeflateMemoryBytes(bytes_, transport::kPrefixBytes);
}

std::chrono::nanoseconds Compression::time() const {
  return static_cast<int64_t>(bytes_) * kEachByte;
}

void Compression::Run(transport::Contents contents, memory::Piece& response,
                      absl::FunctionRef<bool()> interrupted) {
  if (bytes_ == 0 || response.size < backend_.compress_answers_from) return;
  const Clock::time_point begin = Clock::now();
  memory::Piece smaller =
      transport::Deflate(stream_.out_encoding(), {response.begin, response.size}, contents,
                         transport::kPrefixBytes, backend_.pool, interrupted);
  backend_.metrics.compression_seconds().Observe(Clock::now() - begin);
  if (smaller.begin == nullptr) return;
  backend_.metrics.CountCompressed(stream_.out_encoding() == Encoding::kGzip, response.size,
                                   smaller.size);
  response = std::move(smaller);
  done_ = true;
}

}  // namespace quantd::rpc
