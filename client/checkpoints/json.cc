#include "checkpoints/json.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "checkpoints/errors.h"

namespace quantd::checkpoints {
namespace {

constexpr size_t kMaxDepth = 100;
constexpr size_t kMaxValues = 200'000;

// Marks the words for numbers that are not finite while they pass through the parser as strings.
constexpr absl::string_view kMark("\0#", 2);

// Python writes NaN, Infinity and -Infinity, which JSON does not have: outside of strings, these
// words are put into marked strings.
std::string WithMarkedWords(absl::string_view text) {
  std::string marked;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (in_string && text[at] == '\\' && at + 1 < text.size()) {
      marked.push_back(text[at++]);
    } else if (text[at] == '"') {
      in_string = !in_string;
    } else if (!in_string && (text[at] == 'N' || text[at] == 'I' || text[at] == '-')) {
      for (const absl::string_view word : {"NaN", "Infinity", "-Infinity"}) {
        if (!absl::StartsWith(text.substr(at), word)) continue;
        absl::StrAppend(&marked, "\"\\u0000#", word, "\"");
        at += word.size();
        break;
      }
    }
    if (at < text.size()) marked.push_back(text[at]);
  }
  return marked;
}

// Builds a Json, with limits.
class Builder {
 public:
  Builder(Json* root, const VisitedMap* map) : root_(root), map_(map) {}
  const std::string& error() const { return error_; }
  const absl::Status& visited() const { return visited_; }

  // Called by nlohmann::json::sax_parse, which defines the names.
  bool null() { return Put(nullptr); }
  bool boolean(bool value) { return Put(value); }
  bool number_integer(Json::number_integer_t value) { return Put(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return Put(value); }
  bool number_float(Json::number_float_t value, const std::string& text) {
    const bool whole = text.find_first_of(".eE") == std::string::npos;
    return whole ? Put(Json::binary(std::vector<uint8_t>(text.begin(), text.end()))) : Put(value);
  }
  bool string(std::string& value) {
    if (in_map_) {
      visited_ = map_->visit(key_, value);
      return visited_.ok();
    }
    if (!absl::StartsWith(value, kMark)) return Put(std::move(value));
    return Put(Json::binary(std::vector<uint8_t>(value.begin() + kMark.size(), value.end())));
  }
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
  bool Put(Json value) {
    if (in_map_) return NoText();
    return Place(std::move(value)) != nullptr || TooMany();
  }
  bool Open(Json value) {
    if (in_map_) return NoText();
    if (open_.size() >= kMaxDepth) {
      return Fail(absl::StrCat("it has more than ", kMaxDepth, " levels"));
    }
    Json* place = Place(std::move(value));
    if (place == nullptr) return TooMany();
    in_map_ = map_ != nullptr && open_.size() == 1 && key_ == map_->key && place->is_object();
    open_.push_back(place);
    if (!in_map_ || !std::exchange(had_map_, true)) return true;
    return Fail(absl::StrCat("it has '", key_, "' twice"));
  }
  bool Close() {
    in_map_ = false;
    open_.pop_back();
    return true;
  }
  bool NoText() {
    return Fail(absl::StrCat("in '", map_->key, "' the value of '", key_, "' is not a text"));
  }
  bool TooMany() { return Fail(absl::StrCat("it has more than ", kMaxValues, " values")); }
  bool Fail(std::string error) {
    if (error_.empty()) error_ = std::move(error);
    return false;
  }

  Json* const root_;
  const VisitedMap* const map_;
  bool in_map_ = false, had_map_ = false;
  absl::Status visited_;
  std::vector<Json*> open_;  // an array does not grow while one of its elements is open
  std::string key_, error_;
  size_t values_ = 0;
};

std::string DumpOne(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

// `line`: a line break and the indentation of what is appended.
void AppendJson(const Json& json, const std::string& line, std::string* text) {
  if (json.is_binary()) {
    text->append(json.get_binary().begin(), json.get_binary().end());
    return;
  }
  if (!json.is_structured() || json.empty()) {
    absl::StrAppend(text, DumpOne(json));
    return;
  }
  const std::string inner = absl::StrCat(line, "  ");
  text->push_back(json.is_object() ? '{' : '[');
  absl::string_view comma = "";
  for (auto at = json.begin(); at != json.end(); ++at) {
    absl::StrAppend(text, comma, inner);
    comma = ",";
    if (json.is_object()) absl::StrAppend(text, DumpOne(at.key()), ": ");
    AppendJson(*at, inner, text);
  }
  absl::StrAppend(text, line, json.is_object() ? "}" : "]");
}

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view path,
                               const VisitedMap* map) {
  Json root;
  Builder builder(&root, map);
  const bool has_words = absl::StrContains(text, "NaN") || absl::StrContains(text, "Infinity");
  const bool parsed = has_words ? Json::sax_parse(WithMarkedWords(text), &builder)
                                : Json::sax_parse(text.begin(), text.end(), &builder);
  if (!builder.visited().ok()) return builder.visited();
  if (!parsed || !builder.error().empty()) {
    return ContentError("$0: $1", path, builder.error());
  }
  if (!root.is_object()) return ContentError("$0: it is not a JSON object", path);
  return root;
}

std::string DumpJson(const Json& json) {
  std::string text;
  AppendJson(json, "\n", &text);
  return text;
}

}  // namespace quantd::checkpoints
