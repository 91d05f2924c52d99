// Makes text from an untrusted file safe for one line of a terminal or a log.
#ifndef QUANTD_CLI_FILES_PRINTABLE_H_
#define QUANTD_CLI_FILES_PRINTABLE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace quantd::cli {

// Characters that control a terminal are escaped: line breaks, ASCII controls, and U+0080 to
// U+009F, as "\x0a". At most 1000 bytes; longer text ends with "...". Printable text is unchanged,
// so the function may be applied twice.
std::string Printable(absl::string_view text);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_PRINTABLE_H_
