#include "commands/table.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "commands/terminal.h"

namespace quantd::cli {
namespace {

// The columns of a terminal that UTF-8 text takes, as far as one character takes one.
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string Table::ToText() const {
  std::vector<size_t> widths(columns_.size());  // 0: left out
  for (size_t i = 0; i < columns_.size(); ++i) {
    for (const std::vector<std::string>& row : rows_)
      widths[i] = std::max(widths[i], Width(row[i]));
    if (widths[i] > 0) widths[i] = std::max(widths[i], std::string(columns_[i].title).size());
  }
  std::string text;
  const auto add_line = [&](auto cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] == 0) continue;
      const std::string cell = cell_of(i);
      const std::string blanks(widths[i] - Width(cell), ' ');
      if (!line.empty()) line += "  ";
      absl::StrAppend(&line, columns_[i].is_number ? blanks : "", cell,
                      columns_[i].is_number ? "" : blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  };
  add_line([&](size_t i) { return std::string(columns_[i].title); });
  text = absl::StrCat(Styled(STDOUT_FILENO, Style::kBold, text.substr(0, text.size() - 1)), "\n");
  for (const std::vector<std::string>& row : rows_) add_line([&](size_t i) { return row[i]; });
  return text;
}

}  // namespace quantd::cli
