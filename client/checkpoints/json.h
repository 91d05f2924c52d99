// Parses JSON from untrusted files: nesting and size are limited, and numbers keep their
// digits.
#ifndef QUANTD_CHECKPOINTS_JSON_H_
#define QUANTD_CHECKPOINTS_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace quantd::checkpoints {

// Keys are sorted, as with Python's sort_keys.
using Json = nlohmann::json;

// Returns INVALID_ARGUMENT, beginning with `path`, if the text is not UTF-8 JSON, has more than 16
// MiB, 100 levels or 200,000 values, or is not an object. Of repeated keys the last one counts.
// Integers that fit neither int64 nor uint64, and Python's NaN, Infinity and -Infinity, are kept
// for DumpJson: their text is stored with the type binary, which no JSON text has.
absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view path);

// Writes like Python's json.dumps(value, indent=2, sort_keys=True).
std::string DumpJson(const Json& json);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_JSON_H_
