#include "server/trace/context.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace quantd::trace {
namespace {

// The value of a lower-case hexadecimal digit; 16 for other characters.
unsigned Digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  return 16;
}

template <size_t n>
bool Read(absl::string_view text, std::array<uint8_t, n>& bytes) {
  for (size_t i = 0; i < n; ++i) {
    const unsigned high = Digit(text[2 * i]), low = Digit(text[2 * i + 1]);
    if (high > 15 || low > 15) return false;
    bytes[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return true;
}

template <size_t n>
bool IsZero(const std::array<uint8_t, n>& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

}  // namespace

std::optional<Context> ParseTraceParent(absl::string_view text) {
  constexpr size_t kSize = 55;
  if (text.size() < kSize || text[2] != '-' || text[35] != '-' || text[52] != '-') {
    return std::nullopt;
  }
  std::array<uint8_t, 1> version{}, flags{};
  Context context;
  if (!Read(text, version) || !Read(text.substr(3), context.trace_id) ||
      !Read(text.substr(36), context.span_id) || !Read(text.substr(53), flags)) {
    return std::nullopt;
  }
  const bool longer = text.size() > kSize;
  if (version[0] == 0xff || (longer && (version[0] == 0 || text[kSize] != '-'))) {
    return std::nullopt;
  }
  if (IsZero(context.trace_id) || IsZero(context.span_id)) return std::nullopt;
  context.sampled = (flags[0] & 1) != 0;
  return context;
}

std::string TraceParent(const Context& context) {
  return absl::StrCat("00-", Hexadecimal(context.trace_id), "-", Hexadecimal(context.span_id), "-",
                      context.sampled ? "01" : "00");
}

std::string Hexadecimal(absl::Span<const uint8_t> id) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(id.data()), id.size()});
}

}  // namespace quantd::trace
