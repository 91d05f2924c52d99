// See metadata.h. The formats are those of gRPC over HTTP/2 (PROTOCOL-HTTP2).
#include "server/transport/metadata.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace quantd::transport {
namespace {

bool IsBinary(absl::string_view name) { return absl::EndsWith(name, "-bin"); }

}  // namespace

void ParseMetadata(absl::string_view name, absl::string_view value, Metadata& metadata) {
  if (!IsBinary(name)) {
    metadata.emplace_back(name, value);
    return;
  }
  for (const absl::string_view part : absl::StrSplit(value, ',')) {
    std::string bytes;
    // Padding is optional.
    if (absl::Base64Unescape(absl::StripAsciiWhitespace(part), &bytes)) {
      metadata.emplace_back(name, std::move(bytes));
    }
  }
}

size_t CountValues(absl::string_view name, absl::string_view value) {
  return IsBinary(name) ? 1 + static_cast<size_t>(std::count(value.begin(), value.end(), ',')) : 1;
}

std::string EncodeMetadata(const std::string& name, const std::string& value) {
  return IsBinary(name) ? Base64Encode(value) : value;
}

std::string PercentEncode(const std::string& message) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(message.size());
  for (const char c : message) {
    if (c >= ' ' && c <= '~' && c != '%') {
      encoded.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded.push_back('%');
    encoded.push_back(kDigits[byte >> 4]);
    encoded.push_back(kDigits[byte & 15]);
  }
  return encoded;
}

std::string Base64Encode(const std::string& bytes) {
  std::string encoded = absl::Base64Escape(bytes);
  while (!encoded.empty() && encoded.back() == '=') encoded.pop_back();
  return encoded;
}

}  // namespace quantd::transport
