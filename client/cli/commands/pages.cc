#include "commands/pages.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "files/text.h"

namespace quantd::cli {
namespace {

constexpr size_t kTextColumn = 26;  // of the help of a flag

// Words of `text` in lines of at most `width` columns. The first line begins at column `at`, the
// others are indented by `indent`.
std::string Wrap(absl::string_view text, size_t at, size_t indent, int width) {
  std::string result;
  size_t column = at;
  bool first = true;
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    if (!first && column + 1 + word.size() > static_cast<size_t>(width)) {
      absl::StrAppend(&result, "\n", std::string(indent, ' '));
      column = indent;
    } else if (!first) {
      result += ' ';
      ++column;
    }
    absl::StrAppend(&result, word);
    column += word.size();
    first = false;
  }
  return result + "\n";
}

std::string NamesOf(const FlagPage& flag) {
  if (flag.names.empty()) return flag.argument;
  const std::string names = absl::StrJoin(flag.names, ", ");
  if (flag.argument.empty()) return names;
  return absl::StrCat(names, absl::StartsWith(flag.names.back(), "--") ? "=" : " ", flag.argument);
}

// The text with what is known besides it.
std::string TextOf(const FlagPage& flag) {
  std::string text = flag.text;
  if (!flag.choices.empty()) absl::StrAppend(&text, ": ", absl::StrJoin(flag.choices, ", "));
  if (!flag.variable.empty()) absl::StrAppend(&text, " [", flag.variable, "]");
  return text;
}

std::string Line(absl::string_view names, absl::string_view text, int width) {
  std::string line = absl::StrCat("  ", names);
  if (line.size() + 2 > kTextColumn) {
    absl::StrAppend(&line, "\n", std::string(kTextColumn, ' '));
  } else {
    line.append(kTextColumn - line.size(), ' ');
  }
  return line + Wrap(text, kTextColumn, kTextColumn, width);
}

std::string UsageOf(const ProgramPage& program, const CommandPage& command) {
  std::string usage = absl::StrCat(program.name, " ", command.name);
  for (const GroupPage& group : command.groups) {
    for (const FlagPage& flag : group.flags) {
      if (flag.names.empty()) absl::StrAppend(&usage, " ", flag.argument);
    }
  }
  return usage + " [FLAGS]";
}

// The flags of a command, long names first, for completions.
std::vector<const FlagPage*> FlagsOf(const CommandPage& command) {
  std::vector<const FlagPage*> flags;
  for (const GroupPage& group : command.groups) {
    for (const FlagPage& flag : group.flags) {
      if (!flag.names.empty()) flags.push_back(&flag);
    }
  }
  return flags;
}

// The first words of all commands, each once.
std::vector<std::string> FirstWords(const ProgramPage& program) {
  std::vector<std::string> words;
  for (const CommandPage& command : program.commands) {
    const std::string word = command.name.substr(0, command.name.find(' '));
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  return words;
}

std::string BashText(const ProgramPage& program) {
  std::string text = absl::StrCat(
      "# Completion of ", program.name, " for bash: source <(", program.name,
      " completion bash)\n_", program.name,
      "() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} flags choices\n"
      "  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then "
      "before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  COMPREPLY=()\n  if ((COMP_CWORD == 1)); then\n    COMPREPLY=($(compgen -W '",
      absl::StrJoin(FirstWords(program), " "),
      "' -- \"$word\"))\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n");
  for (const CommandPage& command : program.commands) {
    const std::vector<std::string> words = absl::StrSplit(command.name, ' ');
    absl::StrAppend(&text, "    ", words[0], ")\n");
    std::vector<std::string> names(words.begin() + 1, words.end());
    std::string cases;
    for (const FlagPage* flag : FlagsOf(command)) {
      for (const std::string& name : flag->names) {
        names.push_back(flag->argument.empty() || !absl::StartsWith(name, "--") ? name
                                                                                : name + "=");
      }
      if (flag->choices.empty()) continue;
      absl::StrAppend(&cases, "        ", absl::StrJoin(flag->names, "|"), ") choices='",
                      absl::StrJoin(flag->choices, " "), "' ;;\n");
    }
    absl::StrAppend(&text, "      flags='", absl::StrJoin(names, " "), "'\n");
    if (!cases.empty()) absl::StrAppend(&text, "      case $before in\n", cases, "      esac\n");
    absl::StrAppend(&text, "      ;;\n");
  }
  absl::StrAppend(
      &text,
      "  esac\n"
      "  if [[ -n $choices ]]; then\n    COMPREPLY=($(compgen -W \"$choices\" -- \"$word\"))\n"
      "  elif [[ $word == -* || $COMP_CWORD -eq 2 ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
      "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n  fi\n"
      "  [[ ${#COMPREPLY[@]} -gt 0 || $word == -* ]] || COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "}\ncomplete -o filenames -F _",
      program.name, " ", program.name, "\n");
  return text;
}

std::string ZshQuoted(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"\n", " "}});
}

std::string ZshText(const ProgramPage& program) {
  std::string text =
      absl::StrCat("#compdef ", program.name, "\n# Completion of ", program.name,
                   " for zsh: ", program.name, " completion zsh >\"${fpath[1]}/_", program.name,
                   "\"\n_", program.name, "() {\n  local -a commands=(\n");
  for (const CommandPage& command : program.commands) {
    absl::StrAppend(&text, "    '", command.name.substr(0, command.name.find(' ')), ":",
                    ZshQuoted(command.summary), "'\n");
  }
  absl::StrAppend(&text,
                  "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n"
                  "  fi\n  local command=${words[2]}\n  shift words\n  ((CURRENT--))\n"
                  "  case $command in\n");
  for (const CommandPage& command : program.commands) {
    const std::vector<std::string> words = absl::StrSplit(command.name, ' ');
    absl::StrAppend(&text, "    ", words[0], ")\n      _arguments");
    for (const FlagPage* flag : FlagsOf(command)) {
      for (const std::string& name : flag->names) {
        const bool is_long = absl::StartsWith(name, "--");
        absl::StrAppend(&text, " \\\n        '*", name,
                        flag->argument.empty() ? ""
                        : is_long              ? "="
                                               : "+",
                        "[", ZshQuoted(flag->text), "]");
        if (!flag->argument.empty()) {
          absl::StrAppend(&text, ":", ZshQuoted(flag->argument), ":",
                          flag->choices.empty()
                              ? "_files"
                              : absl::StrCat("(", absl::StrJoin(flag->choices, " "), ")"));
        }
        text += '\'';
      }
    }
    const std::string next = absl::StrJoin(words.begin() + 1, words.end(), " ");
    if (!next.empty()) absl::StrAppend(&text, " \\\n        '1:command:(", next, ")'");
    absl::StrAppend(&text, " \\\n        '*:file:_files'\n      ;;\n");
  }
  return absl::StrCat(text, "  esac\n}\n_", program.name, " \"$@\"\n");
}

// Text of a man page: a line must not begin with a dot or an apostrophe.
std::string Roff(absl::string_view text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  escaped = absl::StrReplaceAll(escaped, {{"\n.", "\n\\&."}, {"\n'", "\n\\&'"}});
  if (absl::StartsWith(escaped, ".") || absl::StartsWith(escaped, "'")) {
    escaped.insert(0, "\\&");
  }
  return escaped;
}

}  // namespace

std::string HelpText(const ProgramPage& program, int width) {
  std::string text =
      absl::StrCat(Wrap(absl::StrCat(program.name, " ", program.summary), 0, 0, width),
                   "\nUsage: ", program.name, " COMMAND [FLAGS]\n\nCommands:\n");
  for (const CommandPage& command : program.commands) {
    text += Line(command.name, command.summary, width);
  }
  return absl::StrCat(text, "\n", program.name, " COMMAND --help describes a command.\n\n",
                      Wrap(program.exit_codes, 0, 0, width));
}

std::string HelpText(const ProgramPage& program, const CommandPage& command, int width) {
  std::string text = absl::StrCat(Wrap(command.summary + ".", 0, 0, width),
                                  "\nUsage: ", UsageOf(program, command), "\n");
  if (!command.details.empty()) absl::StrAppend(&text, "\n", Wrap(command.details, 0, 0, width));
  if (!command.examples.empty()) absl::StrAppend(&text, "\nExamples:\n", command.examples, "\n");
  for (const GroupPage& group : command.groups) {
    absl::StrAppend(&text, "\n", group.title, ":\n");
    for (const FlagPage& flag : group.flags) text += Line(NamesOf(flag), TextOf(flag), width);
  }
  return absl::StrCat(text, "\n", Wrap(program.exit_codes, 0, 0, width));
}

absl::StatusOr<std::string> CompletionText(const ProgramPage& program, absl::string_view shell) {
  if (shell == "bash") return BashText(program);
  if (shell == "zsh") return ZshText(program);
  return absl::InvalidArgumentError(absl::StrCat("no completion for '", shell, "'",
                                                 DidYouMean(shell, {"bash", "zsh"}),
                                                 "; there are bash and zsh"));
}

std::string ManText(const ProgramPage& program) {
  std::string text =
      absl::StrCat(".TH ", absl::AsciiStrToUpper(program.name), " 1 \"\" \"quantd ",
                   program.version, "\"\n.SH NAME\n", program.name, " \\- ", Roff(program.summary),
                   "\n.SH SYNOPSIS\n.B ", program.name, "\nCOMMAND [FLAGS]\n.SH COMMANDS\n");
  for (const CommandPage& command : program.commands) {
    absl::StrAppend(&text, ".SS ", Roff(UsageOf(program, command)), "\n", Roff(command.summary),
                    ".\n");
    if (!command.details.empty()) absl::StrAppend(&text, ".PP\n", Roff(command.details), "\n");
    if (!command.examples.empty()) {
      absl::StrAppend(&text, ".PP\n.nf\n", Roff(command.examples), "\n.fi\n");
    }
    for (const GroupPage& group : command.groups) {
      absl::StrAppend(&text, ".PP\n.I ", Roff(group.title), "\n");
      for (const FlagPage& flag : group.flags) {
        absl::StrAppend(&text, ".TP\n.B ", Roff(NamesOf(flag)), "\n", Roff(TextOf(flag)), "\n");
      }
    }
  }
  return absl::StrCat(text, ".SH EXIT STATUS\n", Roff(program.exit_codes), "\n");
}

}  // namespace quantd::cli
