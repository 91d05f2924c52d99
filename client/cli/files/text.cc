#include "files/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace quantd::cli {
namespace {

// The number of letters to insert, remove, change or swap with their neighbour.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      size_t& here = cost[i][j];
      here = i + j;
      if (i == 0 || j == 0) continue;
      here = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                       cost[i - 1][j - 1] + static_cast<size_t>(a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        here = std::min(here, cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

constexpr size_t kMost = 1000;

bool Continues(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

// U+0080 to U+009F in UTF-8, which some terminals treat as controls, like ESC and the next
// letter.
bool IsHighControl(absl::string_view text) {
  return text.size() > 1 && text[0] == '\xC2' && static_cast<uint8_t>(text[1]) < 0xA0;
}

}  // namespace

std::string DidYouMean(absl::string_view word, const std::vector<std::string>& names) {
  constexpr size_t kLongest = 64;  // longer words are never meant as names
  if (word.size() > kLongest) return "";
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  absl::string_view closest;
  for (const std::string& name : names) {
    const size_t colon = name.find(':');
    size_t distance = Distance(word, name);
    if (colon != std::string::npos) {  // fp8 for compressed-tensors:fp8
      distance = std::min(distance, Distance(word, absl::string_view(name).substr(colon + 1)));
    }
    if (distance >= least || distance >= name.size()) continue;
    least = distance;
    closest = name;
  }
  return closest.empty() ? "" : absl::StrCat(", did you mean ", closest);
}

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
