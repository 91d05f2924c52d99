// Parses JSON from untrusted files: nesting and the number of values are limited, and numbers keep
// their digits.
#ifndef QUANTD_CHECKPOINTS_JSON_H_
#define QUANTD_CHECKPOINTS_JSON_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace quantd::checkpoints {

// Keys are sorted, as with Python's sort_keys.
using Json = nlohmann::json;

// A member of the text's object, an object of texts, that is not kept: as JSON it takes several
// times its size. `visit` is called for each of its members, until a call fails.
struct VisitedMap {
  absl::string_view key;
  absl::FunctionRef<absl::Status(const std::string& name, const std::string& text)> visit;
};

// Returns INVALID_ARGUMENT, beginning with `path`, if the text is not UTF-8 JSON, has more than 100
// levels or 200,000 values, or is not an object. Of repeated keys the last one counts. Integers
// that fit neither int64 nor uint64, and Python's NaN, Infinity and -Infinity, are kept for
// DumpJson: their text is stored with the type binary, which no JSON text has. `map` may be null.
absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view path,
                               const VisitedMap* map = nullptr);

// Writes like Python's json.dumps(value, indent=2, sort_keys=True).
std::string DumpJson(const Json& json);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_JSON_H_
