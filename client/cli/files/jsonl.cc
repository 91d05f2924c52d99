// See jsonl.h. The lines are read twice: first to count them, then into their places.
#include "files/jsonl.h"

#include <cstring>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "files/json_reader.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

constexpr size_t kMostLine = 64 << 20;

absl::Status Wrong(int64_t line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, " ", what));
}

// Calls visit(line number, from 1; text of the line) for lines that are not blank, until a call
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
    QUANTD_RETURN_IF_ERROR(visit(number, line));
  }
  return absl::OkStatus();
}

// Reads a line; sets `numbers` to the number of its values. The first `room` of them are written to
// `to`.
class LineReader {
 public:
  LineReader(int64_t number, absl::string_view line, const std::string& column)
      : number_(number), json_(line), column_(column) {}

  absl::Status Run(uint8_t* to, uint64_t room, uint64_t* numbers) {
    bool found = false;
    const auto member = [&](absl::string_view key) {
      if (key != column_) return json_.Skip();
      if (!std::exchange(found, true)) return Numbers(to, room, numbers);
      return Fail(absl::StrCat("has \"", column_, "\" twice"));
    };
    const bool good = json_.Next() == '{' ? json_.Object(member) : Numbers(to, room, numbers);
    if (!status_.ok()) return status_;
    if (json_.too_deep())
      return Wrong(number_, "is not JSON that can be read: it is nested too deeply");
    if (!good || !json_.End()) return Wrong(number_, "is not JSON");
    if (found || *numbers > 0) return absl::OkStatus();
    return Wrong(number_, absl::StrCat("has no \"", column_, "\" (--column names another)"));
  }

 private:
  bool Numbers(uint8_t* to, uint64_t room, uint64_t* numbers) {
    constexpr char kNone[] = "has no array of numbers";
    *numbers = 0;
    if (json_.Next() != '[') return json_.Skip() && Fail(kNone);
    const bool good = json_.Array([&] {
      double value;
      const char next = json_.Next();
      if (next != '0' && next != '-') {
        return json_.Skip() &&
               Fail(absl::StrCat("has something that is not a number at ", *numbers));
      }
      if (!json_.Double(&value)) return false;
      if (*numbers < room) {
        const auto narrow = static_cast<float>(value);
        std::memcpy(to + *numbers * sizeof(narrow), &narrow, sizeof(narrow));
      }
      ++*numbers;
      return true;
    });
    return good && (*numbers > 0 || Fail(kNone));
  }

  bool Fail(absl::string_view what) {
    status_ = Wrong(number_, what);
    return false;
  }

  const int64_t number_;
  JsonReader json_;
  const std::string& column_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<TensorView> ReadJsonl(absl::Span<const uint8_t> file, const std::string& column,
                                     const std::string& path, OutputFile* scratch) {
  const absl::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  TensorView view;
  view.data_type = DataType::kFloat;
  view.shape = {0, 0};
  uint64_t width = 0;
  absl::Status status =
      ForEachLine(text, [&](int64_t number, absl::string_view line) -> absl::Status {
        if (view.shape[0]++ > 0) return absl::OkStatus();
        return LineReader(number, line, column).Run(nullptr, 0, &width);
      });
  if (!status.ok()) return status;
  view.shape[1] = static_cast<int64_t>(width);
  const uint64_t row_bytes = width * sizeof(float);
  const uint64_t bytes = static_cast<uint64_t>(view.shape[0]) * row_bytes;
  if (bytes == 0) return view;
  // A number takes at least 2 bytes.
  if (bytes / 2 > file.size()) {
    return absl::InvalidArgumentError(absl::StrCat("its ", view.shape[0],
                                                   " lines cannot all have the ", view.shape[1],
                                                   " numbers of the first"));
  }
  if (status = scratch->CreateNameless(path, bytes); !status.ok()) return status;
  uint8_t* to = scratch->bytes().data();
  status = ForEachLine(text, [&](int64_t number, absl::string_view line) -> absl::Status {
    uint64_t numbers = 0;
    QUANTD_RETURN_IF_ERROR(LineReader(number, line, column).Run(to, width, &numbers));
    if (numbers != width) {
      return Wrong(number, absl::StrCat("has ", numbers, " numbers, the first has ", width));
    }
    to += row_bytes;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  view.bytes = absl::Span<const uint8_t>(scratch->bytes().data(), bytes);
  return view;
}

}  // namespace quantd::cli
