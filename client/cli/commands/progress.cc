#include "commands/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/time/clock.h"
#include "commands/report.h"

namespace quantd::cli {
namespace {

constexpr int kWidth = 30;
constexpr absl::Duration kBetweenDrawings = absl::Milliseconds(100);

}  // namespace

Progress::Progress(bool enabled, uint64_t total_bytes)
    : enabled_(enabled && isatty(STDERR_FILENO) != 0),
      total_(std::max<uint64_t>(total_bytes, 1)),
      start_(absl::Now()),
      drawn_(absl::InfinitePast()) {}

Progress::~Progress() {
  if (enabled_) std::fputs("\r\033[K", stderr);
}

void Progress::SetLabel(const std::string& label) {
  label_ = Printable(label.substr(0, 30));
  Draw();
}

void Progress::Add(uint64_t bytes) {
  done_ += bytes;
  Draw();
}

void Progress::Draw() {
  const absl::Time now = absl::Now();
  if (!enabled_ || now - drawn_ < kBetweenDrawings) return;
  drawn_ = now;
  const double part = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  const int full = static_cast<int>(part * kWidth);
  const double rate =
      static_cast<double>(done_) / std::max(absl::ToDoubleSeconds(drawn_ - start_), 1e-3) / 1e6;
  std::fprintf(stderr, "\r\033[K[%s%s] %3.0f%%  %.0f MB/s  %s", std::string(full, '#').c_str(),
               std::string(kWidth - full, ' ').c_str(), part * 100, rate, label_.c_str());
}

}  // namespace quantd::cli
