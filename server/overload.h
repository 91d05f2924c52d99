// Logs when the server rejected requests because of load, and how many: two lines in the log,
// however many requests.
#ifndef QUANTD_SERVER_OVERLOAD_H_
#define QUANTD_SERVER_OVERLOAD_H_

#include <array>
#include <chrono>
#include <cstdint>

#include "server/log/log.h"
#include "server/metrics/metrics.h"

namespace quantd::server {

// For one thread.
class Overload {
 public:
  using Clock = std::chrono::steady_clock;
  using Counts = std::array<uint64_t, metrics::kRejections.size()>;
  // An overload is over after this time without a rejection.
  static constexpr std::chrono::seconds kQuiet{5};

  // Call once a second. `rejected`: rejections since the start, by the reasons of
  // metrics::kRejections.
  void Look(Clock::time_point now, const Counts& rejected);

 private:
  void End(Clock::time_point now);
  // The reasons that are about load and have increased since `before`, with their counts.
  log::Fields Since(const Counts& before) const;

  bool overloaded_ = false;
  Clock::time_point began_, last_;
  Counts before_ = {};  // when the overload began
  Counts now_ = {};
};

}  // namespace quantd::server

#endif  // QUANTD_SERVER_OVERLOAD_H_
