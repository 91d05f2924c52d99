// Text in columns: a head, and a row for each tensor.
#ifndef QUANTD_CLI_COMMANDS_TABLE_H_
#define QUANTD_CLI_COMMANDS_TABLE_H_

#include <string>
#include <utility>
#include <vector>

namespace quantd::cli {

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

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_TABLE_H_
