// When the server turned requests away for its load, and how many: two lines in the log, however
// many requests.
#ifndef QUANTD_SERVER_REPORTS_OVERLOAD_H_
#define QUANTD_SERVER_REPORTS_OVERLOAD_H_

#include <array>
#include <chrono>
#include <cstdint>

#include "server/log/log.h"
#include "server/metrics/metrics.h"

namespace quantd::reports {

// From one thread.
class Overload {
 public:
  using Clock = std::chrono::steady_clock;
  using Counts = std::array<uint64_t, metrics::kRejections.size()>;
  // It is over when nobody was turned away for so long.
  static constexpr std::chrono::seconds kQuiet{5};

  // Once a second: what was rejected since the start, by the reasons of metrics::kRejections.
  void Look(Clock::time_point now, const Counts& rejected);

 private:
  void End(Clock::time_point now);
  // Of the reasons that are about load: those that have any.
  log::Fields Since(const Counts& before) const;

  bool overloaded_ = false;
  Clock::time_point began_, last_;
  Counts before_ = {};  // when it began
  Counts now_ = {};
};

}  // namespace quantd::reports

#endif  // QUANTD_SERVER_REPORTS_OVERLOAD_H_
