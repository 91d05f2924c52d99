// Reads a JSON text (RFC 8259) from beginning to end, one value at a time. It stores nothing: the
// memory is that of one string with escapes, whatever the size of the text, and the time is linear.
//
//   JsonReader json(text);
//   bool good = json.Object([&](absl::string_view key) {
//     return key == "shape" ? json.Array([&] { return json.Unsigned(&length); }) : json.Skip();
//   }) && json.End();
//
// Every function reads one value and returns whether the value was there and was valid UTF-8 JSON.
// After false, nothing more may be read. A visitor that returns false ends the reading.
#ifndef QUANTD_CLI_FILES_JSON_READER_H_
#define QUANTD_CLI_FILES_JSON_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace quantd::cli {

class JsonReader {
 public:
  explicit JsonReader(absl::string_view text) : text_(text) {}

  // The first character of the next value: one of {["-0tfn, where '0' is any digit; otherwise '\0'.
  char Next();
  // The key is valid until the visitor returns. The visitor must read the member's value.
  bool Object(absl::FunctionRef<bool(absl::string_view key)> member);
  // The visitor must read an element.
  bool Array(absl::FunctionRef<bool()> element);
  // `value` lives as long as the text and `buffer`, which receives strings with escapes.
  bool String(absl::string_view* value, std::string* buffer);
  // An integer without sign, fraction and exponent; or with a sign.
  bool Unsigned(uint64_t* value);
  bool Integer(int64_t* value);
  // Any number that is finite as a double. -0 is read as 0, as by readers that treat it as an
  // integer.
  bool Double(double* value);
  // Any value, of at most kMaxDepth levels.
  bool Skip();
  // Whether only white space is left.
  bool End();

  // The number of bytes read.
  size_t position() const { return position_; }
  // Whether Skip() failed because of too many levels.
  bool too_deep() const { return too_deep_; }

  static constexpr int kMaxDepth = 100;

 private:
  void SkipSpace();
  bool Take(char expected);
  bool Number(absl::string_view* number);
  bool Word(absl::string_view word);
  bool SkipAt(int depth);

  const absl::string_view text_;
  size_t position_ = 0;
  bool too_deep_ = false;
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_JSON_READER_H_
