#include "files/json_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "quantd/utf8.h"

namespace quantd::cli {
namespace {

bool IsString(absl::string_view contents) {
  return nlohmann::json::accept(absl::StrCat("\"", contents, "\""));
}

// The bytes of a string's contents before the letter of the first escape that is none; more than
// all if every one is good.
size_t BadEscape(absl::string_view contents) {
  size_t at = 0;
  while ((at = contents.find('\\', at)) != absl::string_view::npos) {
    const absl::string_view rest = contents.substr(at);
    const size_t size = IsString(rest.substr(0, 2))    ? 2
                        : IsString(rest.substr(0, 6))  ? 6   // \uXXXX
                        : IsString(rest.substr(0, 12)) ? 12  // a pair of surrogates
                                                       : 0;
    if (size == 0) return at + 1;
    at += size;
  }
  return contents.size() + 1;
}

}  // namespace

void JsonReader::SkipSpace() {
  while (position_ < text_.size() &&
         absl::string_view(" \t\n\r").find(text_[position_]) != absl::string_view::npos) {
    ++position_;
  }
}

bool JsonReader::Take(char expected) {
  SkipSpace();
  if (position_ >= text_.size() || text_[position_] != expected) return false;
  ++position_;
  return true;
}

char JsonReader::Next() {
  SkipSpace();
  if (position_ >= text_.size()) return '\0';
  const char byte = text_[position_];
  if (absl::ascii_isdigit(static_cast<unsigned char>(byte))) return '0';
  return absl::string_view("{[\"-tfn").find(byte) == absl::string_view::npos ? '\0' : byte;
}

bool JsonReader::Object(absl::FunctionRef<bool(absl::string_view key)> member) {
  if (!Take('{')) return false;
  if (Take('}')) return true;
  std::string buffer;
  do {
    absl::string_view key;
    SkipSpace();
    if (!String(&key, &buffer) || !Take(':') || !member(key)) return false;
  } while (Take(','));
  return Take('}');
}

bool JsonReader::Array(absl::FunctionRef<bool()> element) {
  if (!Take('[')) return false;
  if (Take(']')) return true;
  do {
    if (!element()) return false;
  } while (Take(','));
  return Take(']');
}

bool JsonReader::String(absl::string_view* value, std::string* buffer) {
  if (!Take('"')) return false;
  const size_t begin = position_;
  const auto fail = [this, begin] {
    position_ = std::min(position_, begin + BadEscape(text_.substr(begin, position_ - begin)));
    return false;
  };
  bool escapes = false;
  for (; position_ < text_.size() && text_[position_] != '"'; ++position_) {
    if (static_cast<unsigned char>(text_[position_]) < 0x20) return fail();
    if (text_[position_] != '\\') continue;
    escapes = true;
    if (++position_ == text_.size()) break;
  }
  if (position_ >= text_.size()) return fail();
  *value = text_.substr(begin, position_++ - begin);
  if (!escapes) return ValidUtf8Prefix(*value) == value->size();
  const absl::string_view quoted = text_.substr(begin - 1, value->size() + 2);
  nlohmann::json text =
      nlohmann::json::parse(quoted.begin(), quoted.end(), nullptr, /*allow_exceptions=*/false);
  if (!text.is_string()) return fail();
  *buffer = std::move(text.get_ref<std::string&>());
  *value = *buffer;
  return true;
}

bool JsonReader::Number(absl::string_view* number) {
  SkipSpace();
  const size_t begin = position_;
  const auto is_digit = [this] {
    return position_ < text_.size() &&
           absl::ascii_isdigit(static_cast<unsigned char>(text_[position_]));
  };
  const auto digits = [&] {
    if (!is_digit()) return false;
    while (is_digit()) ++position_;
    return true;
  };
  const auto at = [this](char a, char b) {
    return position_ < text_.size() && (text_[position_] == a || text_[position_] == b);
  };
  if (at('-', '-')) ++position_;
  if (at('0', '0')) {
    ++position_;
  } else if (!digits()) {
    return false;
  }
  if (at('.', '.')) {
    ++position_;
    if (!digits()) return false;
  }
  if (at('e', 'E')) {
    ++position_;
    if (at('+', '-')) ++position_;
    if (!digits()) return false;
  }
  *number = text_.substr(begin, position_ - begin);
  return true;
}

bool JsonReader::Unsigned(uint64_t* value) {
  absl::string_view number;
  return Number(&number) && number[0] != '-' && absl::SimpleAtoi(number, value);
}

bool JsonReader::Integer(int64_t* value) {
  absl::string_view number;
  return Number(&number) && number != "-0" && absl::SimpleAtoi(number, value);
}

bool JsonReader::Double(double* value) {
  absl::string_view number;
  if (!Number(&number) || !absl::SimpleAtod(number, value)) return false;
  if (number == "-0") *value = 0;
  return std::isfinite(*value);
}

bool JsonReader::Word(absl::string_view word) {
  if (text_.substr(position_, word.size()) != word) return false;
  position_ += word.size();
  return true;
}

bool JsonReader::SkipAt(int depth) {
  absl::string_view text;
  std::string buffer;
  double number;
  const char next = Next();
  if ((next == '{' || next == '[') && depth == kMaxDepth) {
    too_deep_ = true;
    return false;
  }
  switch (next) {
    case '{':
      return Object([this, depth](absl::string_view) { return SkipAt(depth + 1); });
    case '[':
      return Array([this, depth] { return SkipAt(depth + 1); });
    case '"':
      return String(&text, &buffer);
    case 't':
      return Word("true");
    case 'f':
      return Word("false");
    case 'n':
      return Word("null");
    default:
      return Double(&number);
  }
}

bool JsonReader::Skip() { return SkipAt(0); }

bool JsonReader::End() {
  SkipSpace();
  return position_ == text_.size();
}

}  // namespace quantd::cli
