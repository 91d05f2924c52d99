// What the parser knows of the program, as plain data, and the texts that are made of it: --help,
// the completions of shells, and the man page.
#ifndef QUANTD_CLI_COMMANDS_PAGES_H_
#define QUANTD_CLI_COMMANDS_PAGES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quantd::cli {

struct FlagPage {
  std::vector<std::string> names;  // "-o", "--output"; empty: an argument without a flag
  std::string argument;            // "FILE", "TYPE" ...; empty: the flag has none
  std::string text;
  std::string variable;              // of the environment, with the same meaning; empty: none
  std::vector<std::string> choices;  // of the argument; empty: any text
};

struct GroupPage {
  std::string title;
  std::vector<FlagPage> flags;
};

struct CommandPage {
  std::string name;      // "quantize", "embeddings quantize"
  std::string summary;   // a line, without a full stop
  std::string details;   // a paragraph; may be empty
  std::string examples;  // lines; may be empty
  std::vector<GroupPage> groups;
};

struct ProgramPage {
  std::string name, version, summary, exit_codes;
  std::vector<CommandPage> commands;
};

// Lines have at most `width` columns, except for examples and words that are longer.
std::string HelpText(const ProgramPage& program, int width);
std::string HelpText(const ProgramPage& program, const CommandPage& command, int width);

// `shell`: bash or zsh; INVALID_ARGUMENT for another one.
absl::StatusOr<std::string> CompletionText(const ProgramPage& program, absl::string_view shell);

// In the language of man(7).
std::string ManText(const ProgramPage& program);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_PAGES_H_
