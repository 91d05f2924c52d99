#include "server/transport/encoding.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace quantd::transport {
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

}  // namespace quantd::transport
