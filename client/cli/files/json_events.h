// Reads a JSON text (RFC 8259) from beginning to end with nlohmann's parser, one event at a time.
// It stores nothing but the current string, and the time is linear.
#ifndef QUANTD_CLI_FILES_JSON_EVENTS_H_
#define QUANTD_CLI_FILES_JSON_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace quantd::cli {

// A derived class receives the events. One that returns false ends the reading.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;

  // Returns whether the text is valid UTF-8 JSON, and no event has returned false.
  bool Read(absl::string_view text);
  // The first byte that is not valid JSON; 0 if there is none.
  size_t position() const { return position_; }
  // Whether Read failed because a value that is skipped has more than kMaxDepth levels.
  bool too_deep() const { return too_deep_; }

  static constexpr int kMaxDepth = 100;

 protected:
  enum class Kind : uint8_t { kObject, kArray, kText, kUnsigned, kNegative, kOther };
  struct Value {
    Kind kind;
    std::string* text = nullptr;  // kText
    uint64_t number = 0;          // kUnsigned, and kNegative as int64_t: whole numbers of 64 bits
  };

  // The name of a member, whose value is next.
  virtual bool OnKey(const std::string& key) = 0;
  // A value; of an object or an array its beginning.
  virtual bool OnValue(const Value& value) = 0;
  // The end of an object or an array.
  virtual bool OnEnd() = 0;

  // How many objects and arrays are around the key or the value.
  int depth() const { return depth_; }
  // Called by OnKey or OnValue: there are no events for the rest of this value. Returns true.
  bool Skip() {
    skipped_depth_ = depth_;
    return true;
  }

 private:
  class Sax;
  int depth_ = 0;
  int skipped_depth_ = -1;  // of the value that is skipped
  size_t position_ = 0;
  bool too_deep_ = false;
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_JSON_EVENTS_H_
