// See jsonl.h. The lines are read twice: once to count them, then into their place.
#include "files/jsonl.h"

#include <cstring>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace quantd::cli {
namespace {

constexpr size_t kMostLine = 64 << 20;

absl::Status Wrong(int64_t line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, " ", what));
}

// Calls visit(number of the line, from 1 on; its text) for those that are not blank, until one
// fails.
absl::Status ForEachLine(absl::string_view file,
                         absl::FunctionRef<absl::Status(int64_t, absl::string_view)> visit) {
  for (int64_t number = 1; !file.empty(); ++number) {
    const size_t end = file.find('\n');
    const absl::string_view line = absl::StripAsciiWhitespace(file.substr(0, end));
    file.remove_prefix(end == absl::string_view::npos ? file.size() : end + 1);
    if (line.empty()) continue;
    if (line.size() > kMostLine) {
      return Wrong(number,
                   absl::StrCat("has ", line.size(), " bytes, at most ", kMostLine, " are read"));
    }
    if (absl::Status status = visit(number, line); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadNumbers(int64_t number, absl::string_view line, const std::string& column,
                         std::vector<float>* values) {
  const nlohmann::json parsed = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) return Wrong(number, "is not JSON");
  const nlohmann::json* array = &parsed;
  if (parsed.is_object()) {
    const auto found = parsed.find(column);
    if (found == parsed.end()) {
      return Wrong(number, absl::StrCat("has no \"", column, "\" (--column names another)"));
    }
    array = &*found;
  }
  if (!array->is_array() || array->empty()) return Wrong(number, "has no array of numbers");
  values->clear();
  for (const nlohmann::json& value : *array) {
    if (!value.is_number()) {
      return Wrong(number, absl::StrCat("has something that is not a number at ", values->size()));
    }
    values->push_back(static_cast<float>(value.get<double>()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorView> ReadJsonl(absl::Span<const uint8_t> file, const std::string& column,
                                     const std::string& path, OutputFile* scratch) {
  const absl::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  TensorView view;
  view.data_type = DataType::kFloat;
  view.shape = {0, 0};
  std::vector<float> values;
  absl::Status status =
      ForEachLine(text, [&](int64_t number, absl::string_view line) -> absl::Status {
        if (view.shape[0]++ > 0) return absl::OkStatus();
        absl::Status read = ReadNumbers(number, line, column, &values);
        view.shape[1] = static_cast<int64_t>(values.size());
        return read;
      });
  if (!status.ok()) return status;
  const uint64_t row_bytes = static_cast<uint64_t>(view.shape[1]) * sizeof(float);
  const uint64_t bytes = static_cast<uint64_t>(view.shape[0]) * row_bytes;
  if (bytes == 0) return view;
  // A number takes 2 bytes at least.
  if (bytes / 2 > file.size()) {
    return absl::InvalidArgumentError(absl::StrCat("its ", view.shape[0],
                                                   " lines cannot all have the ", view.shape[1],
                                                   " numbers of the first"));
  }
  if (status = scratch->CreateNameless(path, bytes); !status.ok()) return status;
  uint8_t* to = scratch->bytes().data();
  status = ForEachLine(text, [&](int64_t number, absl::string_view line) -> absl::Status {
    absl::Status read = ReadNumbers(number, line, column, &values);
    if (!read.ok()) return read;
    if (static_cast<int64_t>(values.size()) != view.shape[1]) {
      return Wrong(number,
                   absl::StrCat("has ", values.size(), " numbers, the first has ", view.shape[1]));
    }
    std::memcpy(to, values.data(), row_bytes);
    to += row_bytes;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  view.bytes = absl::Span<const uint8_t>(scratch->bytes().data(), bytes);
  return view;
}

}  // namespace quantd::cli
