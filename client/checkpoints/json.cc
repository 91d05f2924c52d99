#include "checkpoints/json.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "checkpoints/errors.h"

namespace quantd::checkpoints {
namespace {

constexpr size_t kMaxDepth = 100;
constexpr size_t kMaxValues = 200'000;
constexpr size_t kMaxText = 16 << 20;
// Before the digits of a number that is too large for a Json: no text of a person starts so.
constexpr absl::string_view kNumber = "\x01number:";
constexpr char kNumberDumped[] = "\"\\u0001number:";

// Makes a Json, with limits.
class Builder {
 public:
  explicit Builder(Json* root) : root_(root) {}
  const std::string& error() const { return error_; }

  // What nlohmann::json::sax_parse calls; the names are its.
  bool null() { return Put(nullptr); }
  bool boolean(bool value) { return Put(value); }
  bool number_integer(Json::number_integer_t value) { return Put(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return Put(value); }
  bool number_float(Json::number_float_t value, const std::string& text) {
    const bool whole = text.find_first_of(".eE") == std::string::npos;
    return whole ? Put(absl::StrCat(kNumber, text)) : Put(value);
  }
  bool string(std::string& value) { return Put(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return Open(Json::object()); }
  bool start_array(std::size_t) { return Open(Json::array()); }
  bool key(std::string& value) {
    key_ = std::move(value);
    return true;
  }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) {
    return Fail(absl::StrCat("it is not JSON of UTF-8: byte ", position));
  }

 private:
  Json* Place(Json value) {
    if (++values_ > kMaxValues) return nullptr;
    if (open_.empty()) {
      *root_ = std::move(value);
      return root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    Json& slot = (*open_.back())[key_];
    slot = std::move(value);
    return &slot;
  }
  bool Put(Json value) { return Place(std::move(value)) != nullptr || TooMany(); }
  bool Open(Json value) {
    if (open_.size() >= kMaxDepth) {
      return Fail(absl::StrCat("it has more than ", kMaxDepth, " levels"));
    }
    Json* place = Place(std::move(value));
    if (place == nullptr) return TooMany();
    open_.push_back(place);
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  bool TooMany() { return Fail(absl::StrCat("it has more than ", kMaxValues, " values")); }
  bool Fail(std::string error) {
    if (error_.empty()) error_ = std::move(error);
    return false;
  }

  Json* const root_;
  std::vector<Json*> open_;  // arrays do not grow while one of their elements is open
  std::string key_, error_;
  size_t values_ = 0;
};

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view path) {
  if (text.size() > kMaxText) {
    return ContentError(
        absl::StrCat(path, ": it has ", text.size(), " bytes, ", kMaxText, " are the most"));
  }
  Json root;
  Builder builder(&root);
  const bool parsed = Json::sax_parse(text.begin(), text.end(), &builder);
  if (!parsed || !builder.error().empty()) {
    return ContentError(absl::StrCat(path, ": ", builder.error()));
  }
  if (!root.is_object()) return ContentError(absl::StrCat(path, ": it is not a JSON object"));
  return root;
}

std::string DumpJson(const Json& json) {
  const std::string text = json.dump(2, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  std::string result;
  size_t begin = 0;
  for (size_t at; (at = text.find(kNumberDumped, begin)) != std::string::npos;) {
    const size_t digits = at + sizeof(kNumberDumped) - 1, end = text.find('"', digits);
    const absl::string_view number(text.data() + digits, end - digits);
    const absl::string_view unsigned_number =
        number.substr(number.empty() || number[0] != '-' ? 0 : 1);
    const bool is_number =
        !unsigned_number.empty() && std::all_of(unsigned_number.begin(), unsigned_number.end(),
                                                [](char c) { return absl::ascii_isdigit(c); });
    if (is_number) {
      absl::StrAppend(&result, text.substr(begin, at - begin), number);
    } else {
      absl::StrAppend(&result, text.substr(begin, end + 1 - begin));
    }
    begin = end + 1;
  }
  return absl::StrCat(result, text.substr(begin));
}

}  // namespace quantd::checkpoints
