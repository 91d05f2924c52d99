#include "quantd/utf8.h"

#include <cstdint>

namespace quantd {
namespace {

// The length of the character that starts with `lead`, and the range of its second byte; length 0
// if no character starts with it.
struct Form {
  size_t length;
  uint8_t second_low = 0x80;
  uint8_t second_high = 0xbf;
};

Form FormOf(uint8_t lead) {
  if (lead < 0x80) return {1};
  if (lead < 0xc2) return {0};
  if (lead < 0xe0) return {2};
  if (lead == 0xe0) return {3, 0xa0, 0xbf};  // below U+0800: over-long
  if (lead == 0xed) return {3, 0x80, 0x9f};  // U+D800 to U+DFFF: surrogates
  if (lead < 0xf0) return {3};
  if (lead == 0xf0) return {4, 0x90, 0xbf};  // below U+10000: over-long
  if (lead < 0xf4) return {4};
  if (lead == 0xf4) return {4, 0x80, 0x8f};  // over U+10FFFF
  return {0};
}

}  // namespace

size_t ValidUtf8Prefix(absl::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Form form = FormOf(static_cast<uint8_t>(text[at]));
    if (form.length == 0 || form.length > text.size() - at) return at;
    for (size_t i = 1; i < form.length; ++i) {
      const auto byte = static_cast<uint8_t>(text[at + i]);
      const bool second = i == 1;
      if (byte < (second ? form.second_low : 0x80) || byte > (second ? form.second_high : 0xbf)) {
        return at;
      }
    }
    at += form.length;
  }
  return at;
}

}  // namespace quantd
