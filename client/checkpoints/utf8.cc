#include "checkpoints/utf8.h"

#include <cstddef>
#include <cstdint>

namespace quantd::checkpoints {

bool IsUtf8(absl::string_view text) {
  constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};  // by the number of bytes that follow
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<uint8_t>(text[i++]);
    if (first < 0x80) continue;
    const size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc0 || first > 0xf7 || text.size() - i < more) return false;
    uint32_t point = first & (0x3f >> more);
    for (size_t end = i + more; i < end; ++i) {
      const auto next = static_cast<uint8_t>(text[i]);
      if ((next & 0xc0) != 0x80) return false;
      point = point << 6 | (next & 0x3f);
    }
    if (point < kLeast[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) {
      return false;
    }
  }
  return true;
}

}  // namespace quantd::checkpoints
