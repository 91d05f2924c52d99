// Sets Abseil flags from the command line and the environment. Abseil's own parser ends the process
// with several lines and exit code 1 when something is wrong, and lets the last of repeated flags
// win; here everything wrong is one line for the caller to show, and a repeated list flag adds up.
#ifndef QUANTD_SERVER_OPTIONS_FLAG_PARSER_H_
#define QUANTD_SERVER_OPTIONS_FLAG_PARSER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace quantd::server {

// Sets the Abseil flags `names`: first those for which QUANTD_<NAME> is in the environment, then
// those in argv (--name=value, --name value; --name and --noname for a bool). Returns "help" or
// "version" when one of them is asked for, else "". INVALID_ARGUMENT, in one line, for an unknown
// flag or variable QUANTD_... (it names the one that is most like it), a value that does not parse,
// or an argument that is no flag.
absl::StatusOr<std::string> ParseFlags(absl::Span<const absl::string_view> names, int argc,
                                       const char* const* argv);

}  // namespace quantd::server

#endif  // QUANTD_SERVER_OPTIONS_FLAG_PARSER_H_
