// Texts for people: guesses which name a user meant, and makes text from untrusted files safe.
#ifndef QUANTD_CLI_FILES_TEXT_H_
#define QUANTD_CLI_FILES_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace quantd::cli {

// ", did you mean int8" for "itn8"; empty if none of `names` is close: at most two letters, or a
// third of the letters, are missing, superfluous, wrong or swapped.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& names);

// Makes text safe for one line of a terminal or a log. Characters that control a terminal are
// escaped: line breaks, ASCII controls, and U+0080 to U+009F, as "\x0a". At most 1000 bytes; longer
// text ends with "...". Printable text is unchanged, so the function may be applied twice.
std::string Printable(absl::string_view text);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_TEXT_H_
