// How messages are compressed: gRPC's Content-Coding.
#ifndef QUANTD_SERVER_TRANSPORT_ENCODING_H_
#define QUANTD_SERVER_TRANSPORT_ENCODING_H_

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/string_view.h"

namespace quantd::transport {

enum class Encoding : uint8_t { kIdentity, kDeflate, kGzip };

// What the server takes, as grpc-accept-encoding says it.
inline constexpr absl::string_view kEncodings = "identity,deflate,gzip";

// nullopt: none of these.
std::optional<Encoding> ParseEncoding(absl::string_view name);
absl::string_view NameOf(Encoding encoding);
// How responses may be wanted: the words of --compress_answers, and of a call's
// quantd-compress-answers.
inline constexpr std::array<std::pair<absl::string_view, Encoding>, 3> kCompressions = {
    {{"none", Encoding::kIdentity}, {"gzip", Encoding::kGzip}, {"deflate", Encoding::kDeflate}}};
// nullopt: none of these.
std::optional<Encoding> ParseCompression(absl::string_view name);

// Those of ours that a client's grpc-accept-encoding names, and identity, which every client takes.
class Encodings {
 public:
  static Encodings Parse(absl::string_view names);
  bool Has(Encoding encoding) const { return (bits_ >> static_cast<int>(encoding) & 1) != 0; }
  // gzip if it is among them, then deflate.
  Encoding best() const;

 private:
  uint8_t bits_ = 1 << static_cast<int>(Encoding::kIdentity);
};

// The window bits that zlib wants for it. REQUIRES: not kIdentity.
constexpr int WindowBits(Encoding encoding) { return encoding == Encoding::kGzip ? 15 + 16 : 15; }

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_ENCODING_H_
