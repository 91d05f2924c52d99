#include "commands/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "commands/report.h"
#include "files/printable.h"

namespace quantd::cli {
namespace {

constexpr int kWidth = 30;
constexpr absl::Duration kBetweenDrawings = absl::Milliseconds(100);
constexpr absl::Duration kBetweenLines = absl::Seconds(10);

std::string TimeText(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(std::min(seconds, 1e9)));
  if (whole < 60) return absl::StrCat(whole, " s");
  if (whole < 3600) return absl::StrCat(whole / 60, " min ", whole % 60, " s");
  return absl::StrCat(whole / 3600, " h ", whole / 60 % 60, " min");
}

}  // namespace

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
  label_ = Printable(label.substr(0, 30));
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
    const int full = static_cast<int>(part * kWidth);
    std::fprintf(stderr, "\r\033[K[%s%s] %3.0f%%  %.0f MB/s  %s left  %s",
                 std::string(full, '#').c_str(), std::string(kWidth - full, ' ').c_str(),
                 part * 100, rate / 1e6, left.c_str(), label_.c_str());
  } else {
    std::fprintf(stderr, "quantctl: %.0f%% of %s, %.0f MB/s, %s left, %s\n", part * 100,
                 BytesText(total_).c_str(), rate / 1e6, left.c_str(), label_.c_str());
  }
}

}  // namespace quantd::cli
