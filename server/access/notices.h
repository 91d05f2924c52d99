// Log lines that peers can cause: a few are written, the others counted, and their number said.
//
//   Notices notices("refused TLS handshakes", log);
//   notices.Add("refused a TLS handshake peer=ipv4:10.0.0.7:4711 reason=...");
#ifndef QUANTD_SERVER_ACCESS_NOTICES_H_
#define QUANTD_SERVER_ACCESS_NOTICES_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"

namespace quantd::access {

// Writes a line of the log. From any thread.
using Say = std::function<void(absl::string_view line)>;

// Safe from any thread.
class Notices {
 public:
  using Clock = std::chrono::steady_clock;
  // Lines in so long a time.
  static constexpr int kLines = 5;
  static constexpr std::chrono::seconds kTime{10};

  // `what`: of what some are left out.
  Notices(std::string what, Say say) : what_(std::move(what)), say_(std::move(say)) {}

  // Writes the line, or counts it.
  void Add(absl::string_view line, Clock::time_point now = Clock::now());
  // Says how many were left out, when it is time. Called once in a while.
  void Tick(Clock::time_point now = Clock::now());

 private:
  // REQUIRES: mutex_ is held.
  void EndTime(Clock::time_point now);

  const std::string what_;
  const Say say_;
  std::mutex mutex_;
  Clock::time_point began_{};
  int written_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace quantd::access

#endif  // QUANTD_SERVER_ACCESS_NOTICES_H_
