// What is shown on a terminal: styles, tables and a progress bar.
#ifndef QUANTD_CLI_COMMANDS_TERMINAL_H_
#define QUANTD_CLI_COMMANDS_TERMINAL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quantd::cli {

// The columns of the terminal behind a descriptor; 0: it is none, or does not say.
int WidthOf(int descriptor);

enum class Style : uint8_t { kBold, kDim, kRed };

// The text in this style, if the descriptor is a terminal with colours and NO_COLOR is not set
// (https://no-color.org); else the text as it is.
std::string Styled(int descriptor, Style style, absl::string_view text);

// Text in columns: a head, and a row for each tensor.
class Table {
 public:
  struct Column {
    const char* title;
    bool is_number = false;  // aligned to the right
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // REQUIRES: one cell for each column.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }

  // Each line ends with its last cell. Columns without a cell that has text are left out.
  std::string ToText() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// What is shown if stderr is not a terminal.
enum class ElsewhereShown : uint8_t { kNothing, kLines };

// A progress bar on a terminal; elsewhere nothing, or a line from time to time. For one thread at a
// time.
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

// 3072000 as "3.07 MB".
std::string BytesText(uint64_t bytes);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_TERMINAL_H_
