#include "files/json_reader.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "quantd/utf8.h"

namespace quantd::cli {
namespace {

// The four digits of \uXXXX at `at`; -1 if they are not hexadecimal.
int32_t HexDigits(absl::string_view text, size_t at) {
  if (text.size() < 4 || at > text.size() - 4) return -1;
  int32_t value = 0;
  for (const char digit : text.substr(at, 4)) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(digit))) return -1;
    const int low = absl::ascii_isdigit(static_cast<unsigned char>(digit))
                        ? digit - '0'
                        : absl::ascii_tolower(static_cast<unsigned char>(digit)) - 'a' + 10;
    value = value * 16 + low;
  }
  return value;
}

// The character of a \u escape whose digits are at `at`; returns the number of characters read, 4
// or 10, or 0 for half a surrogate pair and for invalid digits.
size_t EscapedCharacter(absl::string_view text, size_t at, uint32_t* character) {
  const int32_t first = HexDigits(text, at);
  if (first < 0 || (first >= 0xdc00 && first < 0xe000)) return 0;
  *character = static_cast<uint32_t>(first);
  if (first < 0xd800 || first >= 0xe000) return 4;
  if (text.substr(at + 4, 2) != "\\u") return 0;
  const int32_t second = HexDigits(text, at + 6);
  if (second < 0xdc00 || second >= 0xe000) return 0;
  *character = 0x10000 + ((static_cast<uint32_t>(first) - 0xd800) << 10) +
               (static_cast<uint32_t>(second) - 0xdc00);
  return 10;
}

void AppendUtf8(uint32_t character, std::string* to) {
  const auto put = [to](uint32_t byte) { to->push_back(static_cast<char>(byte)); };
  if (character < 0x80) return put(character);
  if (character < 0x800) {
    put(0xc0 | character >> 6);
  } else if (character < 0x10000) {
    put(0xe0 | character >> 12);
    put(0x80 | (character >> 6 & 0x3f));
  } else {
    put(0xf0 | character >> 18);
    put(0x80 | (character >> 12 & 0x3f));
    put(0x80 | (character >> 6 & 0x3f));
  }
  put(0x80 | (character & 0x3f));
}

// REQUIRES: RawString accepted it.
void Unescape(absl::string_view raw, std::string* to) {
  to->clear();
  to->reserve(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      to->push_back(raw[i]);
      continue;
    }
    const char letter = raw[++i];
    if (letter == 'u') {
      uint32_t character = 0;
      i += EscapedCharacter(raw, i + 1, &character);
      AppendUtf8(character, to);
    } else {
      const absl::string_view letters = "bfnrt", bytes = "\b\f\n\r\t";
      const size_t at = letters.find(letter);
      to->push_back(at == absl::string_view::npos ? letter : bytes[at]);
    }
  }
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

bool JsonReader::RawString(absl::string_view* raw, bool* escapes) {
  if (!Take('"')) return false;
  const size_t begin = position_;
  *escapes = false;
  for (; position_ < text_.size() && text_[position_] != '"'; ++position_) {
    if (static_cast<unsigned char>(text_[position_]) < 0x20) return false;
    if (text_[position_] != '\\') continue;
    *escapes = true;
    if (++position_ >= text_.size()) return false;
    uint32_t character;
    if (text_[position_] == 'u') {
      const size_t digits = EscapedCharacter(text_, position_ + 1, &character);
      if (digits == 0) return false;
      position_ += digits;
    } else if (absl::string_view("\"\\/bfnrt").find(text_[position_]) == absl::string_view::npos) {
      return false;
    }
  }
  if (position_ >= text_.size()) return false;
  *raw = text_.substr(begin, position_++ - begin);
  return ValidUtf8Prefix(*raw) == raw->size();
}

bool JsonReader::String(absl::string_view* value, std::string* buffer) {
  bool escapes;
  if (!RawString(value, &escapes)) return false;
  if (!escapes) return true;
  Unescape(*value, buffer);
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
  absl::string_view raw;
  bool escapes;
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
      return RawString(&raw, &escapes);
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
