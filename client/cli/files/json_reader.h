// Reads a JSON text (RFC 8259) from its begin to its end, a value at a time. Nothing is kept of it:
// the memory is that of one string with escapes, whatever the text's size, and the time is linear.
//
//   JsonReader json(text);
//   bool good = json.Object([&](absl::string_view key) {
//     return key == "shape" ? json.Array([&] { return json.Unsigned(&length); }) : json.Skip();
//   }) && json.End();
//
// Every function reads one value and says whether it was there and was JSON of UTF-8. After a false
// nothing more may be read. A visitor that returns false ends the reading.
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

  // What the next value begins with: one of {["-0tfn, a digit being '0'; '\0' for anything else.
  char Next();
  // The key lives until the visitor returns. The visitor reads the member's value.
  bool Object(absl::FunctionRef<bool(absl::string_view key)> member);
  // The visitor reads an element.
  bool Array(absl::FunctionRef<bool()> element);
  // `value` lives as long as the text and `buffer`, which takes what has escapes.
  bool String(absl::string_view* value, std::string* buffer);
  // A whole number without sign, fraction and exponent; or with a sign.
  bool Unsigned(uint64_t* value);
  bool Integer(int64_t* value);
  // Any number that is finite as a double. -0 is 0, as for all readers to which it is an integer.
  bool Double(double* value);
  // Any value, of at most kMaxDepth levels.
  bool Skip();
  // Nothing but white space is left.
  bool End();

  // Bytes that were read.
  size_t position() const { return position_; }
  // Whether Skip() failed at too many levels.
  bool too_deep() const { return too_deep_; }

  static constexpr int kMaxDepth = 100;

 private:
  void SkipSpace();
  bool Take(char expected);
  // The string without its quotes, checked; `escapes`: whether it has some.
  bool RawString(absl::string_view* raw, bool* escapes);
  bool Number(absl::string_view* number);
  bool Word(absl::string_view word);
  bool SkipAt(int depth);

  const absl::string_view text_;
  size_t position_ = 0;
  bool too_deep_ = false;
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_JSON_READER_H_
