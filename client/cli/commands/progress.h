// A progress bar on a terminal; elsewhere nothing, or a line from time to time.
#ifndef QUANTD_CLI_COMMANDS_PROGRESS_H_
#define QUANTD_CLI_COMMANDS_PROGRESS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quantd::cli {

// What is shown if stderr is not a terminal.
enum class ElsewhereShown : uint8_t { kNothing, kLines };

// For one thread at a time.
class Progress {
 public:
  // Shown on stderr if `enabled`: a bar, at most ten times a second, or a line every ten seconds.
  Progress(bool enabled, uint64_t total_bytes, ElsewhereShown elsewhere = ElsewhereShown::kNothing);
  ~Progress();  // erases the bar

  void SetLabel(absl::string_view label);  // the current item
  void Add(uint64_t bytes);
  void Set(uint64_t done, uint64_t total);

 private:
  void Draw();

  std::string BarText(double part, absl::string_view rest) const;

  const bool bar_, lines_;
  uint64_t total_;
  const absl::Time start_;
  std::string label_;
  uint64_t done_ = 0;
  absl::Time drawn_;
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_PROGRESS_H_
