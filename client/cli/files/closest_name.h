// Guesses which name a user meant.
#ifndef QUANTD_CLI_FILES_CLOSEST_NAME_H_
#define QUANTD_CLI_FILES_CLOSEST_NAME_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace quantd::cli {

// ", did you mean int8" for "itn8"; empty if none of `names` is close: at most two letters, or a
// third of the letters, are missing, superfluous, wrong or swapped.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& names);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_CLOSEST_NAME_H_
