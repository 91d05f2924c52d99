// A progress bar on a terminal; nothing anywhere else.
#ifndef QUANTD_CLI_COMMANDS_PROGRESS_H_
#define QUANTD_CLI_COMMANDS_PROGRESS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace quantd::cli {

// Not thread safe.
class Progress {
 public:
  // Shown on stderr if that is a terminal and `enabled`.
  Progress(bool enabled, uint64_t total_bytes);
  ~Progress();  // erases the bar

  void SetLabel(const std::string& label);  // what is being worked on
  void Add(uint64_t bytes);

 private:
  void Draw();  // ten times a second at most

  const bool enabled_;
  const uint64_t total_;
  const absl::Time start_;
  std::string label_;
  uint64_t done_ = 0;
  absl::Time drawn_;
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_PROGRESS_H_
