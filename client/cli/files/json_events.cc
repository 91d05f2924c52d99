#include "files/json_events.h"

#include "absl/strings/match.h"
#include "nlohmann/json.hpp"

namespace quantd::cli {

using Json = nlohmann::json;

// nlohmann::json::sax_parse defines the names of the public functions.
class JsonEvents::Sax {
 public:
  explicit Sax(JsonEvents* to) : to_(*to) {}

  bool null() { return Take({Kind::kOther}); }
  bool boolean(bool) { return Take({Kind::kOther}); }
  bool number_integer(Json::number_integer_t value) {
    return Take({Kind::kNegative, nullptr, static_cast<uint64_t>(value)});
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    return Take({Kind::kUnsigned, nullptr, value});
  }
  bool number_float(Json::number_float_t, const std::string&) { return Take({Kind::kOther}); }
  bool string(std::string& value) { return Take({Kind::kText, &value}); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(size_t) { return Open(Kind::kObject); }
  bool start_array(size_t) { return Open(Kind::kArray); }
  bool key(std::string& value) { return Skips() || to_.OnKey(value); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool parse_error(size_t position, const std::string&, const Json::exception&) {
    to_.position_ = position - 1;
    return false;
  }

 private:
  bool Skips() const { return to_.skipped_depth_ >= 0; }
  void EndSkip() {
    if (to_.skipped_depth_ == to_.depth_) to_.skipped_depth_ = -1;
  }
  bool Take(const Value& value) {
    if (!Skips() && !to_.OnValue(value)) return false;
    EndSkip();
    return true;
  }
  bool Open(Kind kind) {
    to_.too_deep_ = Skips() && to_.depth_ - to_.skipped_depth_ >= kMaxDepth;
    if (to_.too_deep_ || (!Skips() && !to_.OnValue({kind}))) return false;
    ++to_.depth_;
    return true;
  }
  bool Close() {
    --to_.depth_;
    if (!Skips()) return to_.OnEnd();
    EndSkip();
    return true;
  }

  JsonEvents& to_;
};

bool JsonEvents::Read(absl::string_view text) {
  // The parser takes the former for the end of the text, and leaves out the latter.
  if (const size_t zero = text.find('\0'); zero != absl::string_view::npos) {
    position_ = zero;
    return false;
  }
  if (absl::StartsWith(text, "\xef\xbb\xbf")) return false;
  Sax sax(this);
  return Json::sax_parse(text.begin(), text.end(), &sax);
}

}  // namespace quantd::cli
