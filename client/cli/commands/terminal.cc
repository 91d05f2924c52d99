#include "commands/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace quantd::cli {
namespace {

bool HasColours(int descriptor) {
  const char* const none = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  return isatty(descriptor) != 0 && (none == nullptr || *none == '\0') && kind != nullptr &&
         absl::string_view(kind) != "dumb";
}

}  // namespace

int WidthOf(int descriptor) {
  winsize size = {};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string Styled(int descriptor, Style style, absl::string_view text) {
  if (!HasColours(descriptor)) return std::string(text);
  const int code = style == Style::kBold ? 1 : style == Style::kDim ? 2 : 31;
  return absl::StrCat("\033[", code, "m", text, "\033[0m");
}

}  // namespace quantd::cli
