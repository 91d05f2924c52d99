// The command line: which command, which files, which flags, and the help for them.
#ifndef QUANTD_CLI_ARGUMENTS_H_
#define QUANTD_CLI_ARGUMENTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quantd::cli {

struct Arguments {
  std::string command;             // "help" when help was asked for
  std::vector<std::string> files;  // for "help": the command that it is about, or nothing
};

// Sets the flags from `argv` (--name=value, --name value, -o value; --name and --noname for a bool;
// repeated lists add up) and QUANTD_ADDRESS. INVALID_ARGUMENT, one line, for an unknown command, a
// flag that the command does not take, a value that does not parse, or a wrong number of files.
absl::StatusOr<Arguments> ParseArguments(int argc, const char* const* argv);

// Help: of a command, or of quantctl when it is not the name of one.
std::string HelpText(absl::string_view command);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_ARGUMENTS_H_
