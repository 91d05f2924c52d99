#include "server/transport/header_encoding.h"

#include "absl/strings/escaping.h"

namespace quantd::transport {

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
