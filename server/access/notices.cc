// See notices.h.
#include "server/access/notices.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace quantd::access {

void Notices::EndTime(Clock::time_point now) {
  if (now - began_ < kTime) return;
  if (left_out_ != 0) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - began_).count();
    say_(absl::StrCat(what_, ": ", left_out_, " more in ", seconds, " s, not shown"));
  }
  began_ = now;
  written_ = 0;
  left_out_ = 0;
}

void Notices::Add(absl::string_view line, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  EndTime(now);
  if (written_ == kLines) {
    ++left_out_;
    return;
  }
  ++written_;
  say_(line);
}

void Notices::Tick(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (left_out_ != 0) EndTime(now);
}

}  // namespace quantd::access
