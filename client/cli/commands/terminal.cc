#include "commands/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "files/text.h"
#include "quantd/utf8.h"

namespace quantd::cli {
namespace {

constexpr size_t kUsualWidth = 80;  // of a terminal that does not say
constexpr size_t kWidestBar = 30;   // columns at most
constexpr absl::Duration kBetweenDrawings = absl::Milliseconds(100);
constexpr absl::Duration kBetweenLines = absl::Seconds(10);

std::string TimeText(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(std::min(seconds, 1e9)));
  if (whole < 60) return absl::StrCat(whole, " s");
  if (whole < 3600) return absl::StrCat(whole / 60, " min ", whole % 60, " s");
  return absl::StrCat(whole / 3600, " h ", whole / 60 % 60, " min");
}

// The columns of a terminal that UTF-8 text takes, as far as one character takes one.
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

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

std::string BytesText(uint64_t bytes) {
  const char* unit = "bytes";
  double value = static_cast<double>(bytes);
  for (const char* larger : {"kB", "MB", "GB", "TB"}) {
    if (value < 1000) break;
    value /= 1000;
    unit = larger;
  }
  return absl::StrFormat("%.*f %s", bytes < 1000 ? 0 : 2, value, unit);
}

std::string Table::ToText() const {
  std::vector<size_t> widths(columns_.size());  // 0: left out
  for (size_t i = 0; i < columns_.size(); ++i) {
    for (const std::vector<std::string>& row : rows_)
      widths[i] = std::max(widths[i], Width(row[i]));
    if (widths[i] > 0) widths[i] = std::max(widths[i], std::string(columns_[i].title).size());
  }
  std::string text;
  const auto add_line = [&](auto cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] == 0) continue;
      const std::string cell = cell_of(i);
      const std::string blanks(widths[i] - Width(cell), ' ');
      if (!line.empty()) line += "  ";
      absl::StrAppend(&line, columns_[i].is_number ? blanks : "", cell,
                      columns_[i].is_number ? "" : blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  };
  add_line([&](size_t i) { return std::string(columns_[i].title); });
  text = absl::StrCat(Styled(STDOUT_FILENO, Style::kBold, text.substr(0, text.size() - 1)), "\n");
  for (const std::vector<std::string>& row : rows_) add_line([&](size_t i) { return row[i]; });
  return text;
}

Progress::Progress(bool enabled, uint64_t total_bytes, ElsewhereShown elsewhere)
    : bar_(enabled && isatty(STDERR_FILENO) != 0),
      lines_(enabled && !bar_ && elsewhere == ElsewhereShown::kLines),
      total_(std::max<uint64_t>(total_bytes, 1)),
      start_(absl::Now()),
      drawn_(bar_ ? absl::InfinitePast() : start_) {}

Progress::~Progress() {
  if (bar_) std::fputs("\r\033[K", stderr);
}

void Progress::SetLabel(absl::string_view label) {
  label_ = Printable(label);
  Draw();
}

void Progress::Add(uint64_t bytes) {
  done_ += bytes;
  Draw();
}

void Progress::Set(uint64_t done, uint64_t total) {
  done_ = done;
  total_ = std::max<uint64_t>(total, 1);
  Draw();
}

// A line that the terminal does not wrap: a bar, `rest` and the label, as far as they fit.
std::string Progress::BarText(double part, absl::string_view rest) const {
  const int terminal = WidthOf(STDERR_FILENO);
  const size_t width = (terminal > 0 ? static_cast<size_t>(terminal) : kUsualWidth) - 1;
  std::string text(rest.substr(0, width));
  if (text.size() + 13 <= width) {
    const size_t bar = std::min(kWidestBar, width - text.size() - 3);
    const auto full = static_cast<size_t>(part * static_cast<double>(bar));
    text = absl::StrCat("[", std::string(full, '#'), std::string(bar - full, ' '), "] ", text);
  }
  if (text.size() + 3 >= width) return text;
  // Bytes are at least as many as columns.
  const absl::string_view label = absl::string_view(label_).substr(0, width - text.size() - 2);
  return absl::StrCat(text, "  ", label.substr(0, ValidUtf8Prefix(label)));
}

void Progress::Draw() {
  if (!bar_ && !lines_) return;
  const absl::Time now = absl::Now();
  if (now - drawn_ < (bar_ ? kBetweenDrawings : kBetweenLines)) return;
  drawn_ = now;
  const auto done = static_cast<double>(done_), total = static_cast<double>(total_);
  const double part = std::min(1.0, done / total);
  const double rate = done / std::max(absl::ToDoubleSeconds(drawn_ - start_), 1e-3);
  const std::string left = rate > 0 ? TimeText((total - std::min(done, total)) / rate) : "?";
  if (bar_) {
    const std::string text =
        BarText(part, absl::StrFormat("%3.0f%%  %.0f MB/s  %s left", part * 100, rate / 1e6, left));
    std::fprintf(stderr, "\r\033[K%s", Styled(STDERR_FILENO, Style::kDim, text).c_str());
  } else {
    std::fprintf(stderr, "quantctl: %.0f%% of %s, %.0f MB/s, %s left, %s\n", part * 100,
                 BytesText(total_).c_str(), rate / 1e6, left.c_str(), label_.c_str());
  }
}

}  // namespace quantd::cli
