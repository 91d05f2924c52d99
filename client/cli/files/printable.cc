#include "files/printable.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace quantd::cli {
namespace {

constexpr size_t kMost = 1000;

bool Continues(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

// U+0080 to U+009F in UTF-8, which some terminals treat as controls, like ESC and the next
// letter.
bool IsHighControl(absl::string_view text) {
  return text.size() > 1 && text[0] == '\xC2' && static_cast<uint8_t>(text[1]) < 0xA0;
}

}  // namespace

std::string Printable(absl::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size() && result.size() <= kMost; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool high = IsHighControl(text.substr(i));
    if (high || absl::ascii_iscntrl(byte)) {
      const uint8_t control = high ? static_cast<uint8_t>(text[++i]) : byte;
      absl::StrAppend(&result, "\\x", absl::Hex(control, absl::kZeroPad2));
    } else {
      result.push_back(text[i]);
    }
  }
  if (result.size() <= kMost) return result;
  size_t end = kMost - 3;
  for (int i = 0; i < 3 && Continues(result[end]); ++i) --end;  // the most continuation bytes
  return absl::StrCat(absl::string_view(result).substr(0, end), "...");
}

}  // namespace quantd::cli
