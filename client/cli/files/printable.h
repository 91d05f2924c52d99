// Text out of a file that nobody vouches for, fit for one line of a terminal or a log.
#ifndef QUANTD_CLI_FILES_PRINTABLE_H_
#define QUANTD_CLI_FILES_PRINTABLE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace quantd::cli {

// What a terminal would act on is escaped: line breaks, the controls of ASCII, and U+0080 to
// U+009F, as "\x0a". At most 1000 bytes, the last three "..." where there were more. Printable text
// stays as it is, so that what went through here may go through again.
std::string Printable(absl::string_view text);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_PRINTABLE_H_
