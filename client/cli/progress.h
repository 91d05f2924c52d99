// A progress bar on a terminal; nothing anywhere else.
#ifndef QUANTD_CLI_PROGRESS_H_
#define QUANTD_CLI_PROGRESS_H_

#include <cstdint>
#include <mutex>
#include <string>

#include "absl/time/time.h"

namespace quantd::cli {

// Thread safe.
class Progress {
 public:
  // Shown on stderr if that is a terminal and `enabled`.
  Progress(bool enabled, uint64_t total_bytes);
  ~Progress();  // erases the bar

  void SetLabel(const std::string& label);
  void Add(uint64_t bytes);

 private:
  void Draw();  // REQUIRES: mutex_ held

  const bool enabled_;
  const uint64_t total_;
  const absl::Time start_;
  std::mutex mutex_;
  std::string label_;
  uint64_t done_ = 0;
  absl::Time drawn_;
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_PROGRESS_H_
