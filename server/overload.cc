#include "server/overload.h"

#include <algorithm>

#include "absl/strings/string_view.h"

namespace quantd::server {
namespace {

// The others are caused by the request or by the drain.
constexpr absl::string_view kOfLoad[] = {"queue_full", "queue_timeout", "receiving_full",
                                         "too_many_calls", "upload_stalled"};

}  // namespace

log::Fields Overload::Since(const Counts& before) const {
  log::Fields fields;
  for (size_t i = 0; i < now_.size(); ++i) {
    const absl::string_view label = metrics::kRejections[i].label;
    const bool of_load =
        std::find(std::begin(kOfLoad), std::end(kOfLoad), label) != std::end(kOfLoad);
    if (of_load && now_[i] > before[i]) fields.emplace_back(label, now_[i] - before[i]);
  }
  return fields;
}

void Overload::Look(Clock::time_point now, const Counts& rejected) {
  const Counts last = now_;
  now_ = rejected;
  const log::Fields fresh = Since(last);
  if (!fresh.empty()) {
    last_ = now;
    if (overloaded_) return;
    overloaded_ = true;
    began_ = now;
    before_ = last;
    log::Warn("overload begins", fresh);
  } else if (overloaded_ && now - last_ >= kQuiet) {
    End(last_);
  }
}

void Overload::End(Clock::time_point now) {
  overloaded_ = false;
  log::Fields fields = Since(before_);
  fields.emplace_back("seconds", std::chrono::duration<double>(now - began_).count());
  log::Warn("overload is over", fields);
}

}  // namespace quantd::server
