// JSON of other people's files: any nesting and size is refused or bounded, and numbers keep their
// digits.
#ifndef QUANTD_CHECKPOINTS_JSON_H_
#define QUANTD_CHECKPOINTS_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace quantd::checkpoints {

// Keys are sorted, as Python's sort_keys does it.
using Json = nlohmann::json;

// INVALID_ARGUMENT that starts with `path`: not JSON of UTF-8, more than 16 MiB, 100 levels or
// 200,000 values, or not an object. Of keys that come twice the last counts. A whole number that
// neither int64 nor uint64 holds is kept for DumpJson as it is: as its digits, of the type binary,
// which no text of JSON has.
absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view path);

// As Python's json.dumps(value, indent=2, sort_keys=True) writes it.
std::string DumpJson(const Json& json);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_JSON_H_
