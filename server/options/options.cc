// The command line and the environment. See options.h.
#include "server/options/options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "quantd/executor.h"
#include "server/memory/container.h"
#include "server/options/flags.h"
#include "server/scheduling/policy.h"

namespace quantd::server {
namespace {

constexpr absl::string_view kPrefix = "QUANTD_";
// Where a group of flags begins in --help.
constexpr std::pair<absl::string_view, absl::string_view> kGroups[] = {
    {"listen", "Addresses"},
    {"max_message_bytes", "Limits"},
    {"stall_timeout", "Slow clients"},
    {"compress_answers", "Responses"},
    {"max_connections", "Connections"},
    {"threads", "Cores"},
    {"shared_memory_dir", "Shared memory"},
    {"tls_cert", "TLS and tokens"},
    {"lame_duck_seconds", "Shutdown"},
    {"log_format", "Log and traces"}};
constexpr size_t kHelpWidth = 80;

std::string Variable(absl::string_view flag) {
  return absl::StrCat(kPrefix, absl::AsciiStrToUpper(flag));
}

// How many characters to add, remove or replace to get from one word to the other.
size_t Distance(absl::string_view from, absl::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

// The name of a flag that is most like a misspelt one; empty: none is.
std::string MostLike(absl::string_view name, const std::vector<Flag>& flags) {
  std::vector<std::string> names = {"help", "version", "check"};
  for (const Flag& flag : flags) names.emplace_back(flag.name);
  const auto closest = std::min_element(
      names.begin(), names.end(),
      [&](const auto& a, const auto& b) { return Distance(name, a) < Distance(name, b); });
  return Distance(name, *closest) <= 1 + name.size() / 4 ? *closest : "";
}

// Reads "--name=value" and "--name value". given[i] becomes what flags[i] was given, in order. Help
// and version are shown whatever else is wrong.
absl::Status ReadWords(const std::vector<Flag>& flags, int argc, const char* const* argv,
                       std::vector<std::vector<std::string>>& given, CommandLine& line) {
  absl::Status status;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    const size_t equals = std::min(word.find('='), word.size());
    std::string name(word.substr(0, equals));
    // --some-name is --some_name.
    if (absl::StartsWith(name, "--")) std::replace(name.begin() + 2, name.end(), '-', '_');
    if (word == "--check") {
      line.action = Action::kCheck;
      continue;
    }
    if (name == "--help" || name == "-h" || name == "--version") {
      line.action = name == "--version" ? Action::kVersion : Action::kHelp;
      return absl::OkStatus();
    }
    const auto flag = std::find_if(flags.begin(), flags.end(), [&name](const Flag& f) {
      return name == absl::StrCat("--", f.name);
    });
    if (flag == flags.end()) {
      const std::string like = absl::StartsWith(name, "--") ? MostLike(name.substr(2), flags) : "";
      status.Update(absl::InvalidArgumentError(
          absl::StrCat("unexpected argument '", name, "'; ",
                       like.empty() ? "see --help" : absl::StrCat("did you mean --", like, "?"))));
    } else if (equals < word.size()) {
      given[flag - flags.begin()].emplace_back(word.substr(equals + 1));
    } else if (i + 1 < argc && !absl::StartsWith(argv[i + 1], "--")) {
      given[flag - flags.begin()].emplace_back(argv[++i]);
    } else {
      status.Update(absl::InvalidArgumentError(absl::StrCat(name, " has no value")));
    }
  }
  return status;
}

// Kubernetes sets variables NAME_SERVICE_... and NAME_PORT... for each Service NAME in every
// container.
bool IsOfKubernetes(absl::string_view variable) {
  for (const char* const part : {"_SERVICE_", "_PORT"}) {
    for (size_t at = variable.find(part); at != absl::string_view::npos;
         at = variable.find(part, at + 1)) {
      const std::string host = absl::StrCat(variable.substr(0, at), "_SERVICE_HOST");
      if (std::getenv(host.c_str()) != nullptr) return true;
    }
  }
  return false;
}

// Notes every variable QUANTD_... that is not read, so that its author learns that it has no
// effect.
void NoteUnknownVariables(const std::vector<Flag>& flags, std::vector<std::string>& notes) {
  std::vector<std::string> unknown;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const absl::string_view assignment = *entry;
    const std::string name(assignment.substr(0, assignment.find('=')));
    if (!absl::StartsWith(name, kPrefix) || IsOfKubernetes(name)) continue;
    const auto is_of = [&name](const Flag& flag) { return Variable(flag.name) == name; };
    if (std::any_of(flags.begin(), flags.end(), is_of)) continue;
    const std::string like = MostLike(absl::AsciiStrToLower(name.substr(kPrefix.size())), flags);
    unknown.push_back(like.empty() ? name
                                   : absl::StrCat(name, " (did you mean ", Variable(like), "?)"));
  }
  if (unknown.empty()) return;
  notes.push_back(absl::StrCat("ignored variables in the environment that are not flags: ",
                               absl::StrJoin(unknown, ", ")));
}

absl::Status Set(const Flag& flag, absl::string_view source, const std::string& text) {
  const std::string wrong = flag.take(text);
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("invalid value '", text, "' for ", source, ": ", wrong));
}

absl::Status Parse(const std::vector<Flag>& flags, int argc, const char* const* argv,
                   CommandLine& line) {
  std::vector<std::vector<std::string>> given(flags.size());
  absl::Status status = ReadWords(flags, argc, argv, given, line);
  if (!status.ok() || line.action == Action::kHelp || line.action == Action::kVersion)
    return status;
  for (size_t i = 0; i < flags.size(); ++i) {
    const Flag& flag = flags[i];
    const char* const value = std::getenv(Variable(flag.name).c_str());
    status = Set(flag, "the default", flag.by_default);
    const std::string text = given[i].empty() ? (value == nullptr ? flag.by_default : value)
                             : flag.is_list   ? absl::StrJoin(given[i], ",")
                                              : given[i].back();
    if (!given[i].empty()) {
      status = Set(flag, absl::StrCat("--", flag.name), text);
    } else if (value != nullptr) {
      status = Set(flag, Variable(flag.name), text);
    }
    if (text != flag.by_default) line.changed.push_back(absl::StrCat("--", flag.name, "=", text));
    if (!status.ok()) return status;
  }
  NoteUnknownVariables(flags, line.notes);
  return absl::OkStatus();
}

// Checks that depend on several flags, and values that are apart.
absl::Status Check(const Options& options, const memory::Wanted& wanted) {
  if (wanted.receiving != 0 && wanted.receiving < memory::kLeastReceiving) {
    return absl::InvalidArgumentError(
        absl::StrCat("--receive_budget_bytes is ", wanted.receiving, ", must be 0 or at least ",
                     memory::kLeastReceiving, ": messages come in pieces of half of that"));
  }
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    return absl::InvalidArgumentError(
        options.tls_cert.empty() ? "--tls_key is given, --tls_cert is not: TLS needs both"
                                 : "--tls_cert is given, --tls_key is not: TLS needs both");
  }
  if (options.tls_cert.empty() && !options.tls_client_ca.empty()) {
    return absl::InvalidArgumentError(
        "--tls_client_ca is given, --tls_cert and --tls_key are not: clients show certificates in "
        "TLS only");
  }
  return absl::OkStatus();
}

// Fills in values that were 0 for "find out", and divides the memory.
void Complete(Options& options, memory::Wanted& wanted) {
  if (options.threads == 0) options.threads = Executor::DefaultThreads();
  const scheduling::Policy policy = options.policy();
  options.event_loops = policy.loops;
  const uint64_t limit = memory::LimitBytes();
  if (options.max_connections == 0) {
    options.max_connections = std::clamp<int64_t>(static_cast<int64_t>(limit >> 19), 64, 1024);
  }
  wanted.connections = options.max_connections;
  wanted.calls = options.max_calls();
  wanted.threads = policy.threads();
  wanted.tls = !options.tls_cert.empty();
  wanted.shared_memory = !options.shared_memory_dir.empty();
  options.memory = memory::Divide(limit, wanted);
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  memory::Wanted wanted;
  absl::Status status = Parse(Flags(line.options, wanted), argc, argv, line);
  const bool complete = line.action == Action::kServe || line.action == Action::kCheck;
  if (status.ok() && complete) status = Check(line.options, wanted);
  if (!status.ok()) return absl::InvalidArgumentError(OneLine(status.message()));
  if (complete) Complete(line.options, wanted);
  return line;
}

std::string HelpText(absl::string_view version) {
  std::string text = absl::StrCat(
      "quantd ", version,
      ": quantizes tensors for any gRPC client.\n\n"
      "Usage: quantd [--name=value]...\n\n"
      "A flag --some_name can also be given as QUANTD_SOME_NAME in the environment; the\n"
      "flag wins. Sizes take units (64MiB, 1GB), times too (500ms, 2m).\n");
  Options options;
  memory::Wanted wanted;
  for (const Flag& flag : Flags(options, wanted)) {
    for (const auto& [first, group] : kGroups) {
      if (first == flag.name) absl::StrAppend(&text, "\n", group, "\n");
    }
    absl::StrAppend(&text, "  --", flag.name, "  (", flag.by_default, ")\n");
    std::string line = "     ";
    for (const absl::string_view word : absl::StrSplit(flag.help, ' ')) {
      if (line.size() + 1 + word.size() > kHelpWidth) {
        absl::StrAppend(&text, line, "\n");
        line = "     ";
      }
      absl::StrAppend(&line, " ", word);
    }
    absl::StrAppend(&text, line, "\n");
  }
  absl::StrAppend(
      &text,
      "\nOther\n  --check\n      Checks the flags and the files that they name, and ends.\n"
      "  --version\n      Shows the version.\n  --help\n      Shows this page.\n");
  return text;
}

std::string OneLine(absl::string_view text) {
  std::string line;
  for (const char byte : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(byte))) {
      absl::StrAppend(&line, "\\x", absl::Hex(static_cast<unsigned char>(byte), absl::kZeroPad2));
    } else {
      line.push_back(byte);
    }
  }
  return line;
}

log::Fields Describe(const Options& options) {
  Options copy = options;
  memory::Wanted wanted;
  log::Fields fields = {{"memory_limit_bytes", options.memory.limit},
                        {"region_hole_bytes", options.memory.region_holes},
                        {"most_memory_bytes", options.memory.most()}};
  for (const Flag& flag : Flags(copy, wanted)) fields.push_back(flag.show());
  return fields;
}

}  // namespace quantd::server
