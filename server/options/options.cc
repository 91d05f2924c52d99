// The command line and the environment. See options.h.
#include "server/options/options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "quantd/executor.h"
#include "server/loop/policy.h"
#include "server/memory/container.h"
#include "server/options/flags.h"

namespace quantd::server {
namespace {

constexpr absl::string_view kPrefix = "QUANTD_";
// Flags with a new name; the old one works for one more release.
constexpr std::pair<absl::string_view, absl::string_view> kRenamed[] = {{"queues", "event_loops"}};

std::string Variable(absl::string_view flag) {
  return absl::StrCat(kPrefix, absl::AsciiStrToUpper(flag));
}

std::string Renamed(absl::string_view old, absl::string_view name) {
  return absl::StrCat(old, " is now ", name, "; the old name will be removed in the next release");
}

// The arguments, with "--name=value" split into two, because CLI11 takes empty values only so, and
// with current names.
std::vector<std::string> WordsOf(int argc, const char* const* argv,
                                 std::vector<std::string>& notes) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    const size_t equals = absl::StartsWith(word, "--") ? word.find('=') : absl::string_view::npos;
    words.emplace_back(word.substr(0, equals));
    for (const auto& [old, name] : kRenamed) {
      if (words.back() != absl::StrCat("--", old)) continue;
      notes.push_back(Renamed(words.back(), absl::StrCat("--", name)));
      words.back() = absl::StrCat("--", name);
    }
    if (equals != absl::string_view::npos) words.emplace_back(word.substr(equals + 1));
  }
  return words;
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

// A flag's value in the environment, or null.
const char* FromEnvironment(absl::string_view flag, std::vector<std::string>& notes) {
  const char* value = std::getenv(Variable(flag).c_str());
  for (const auto& [old, name] : kRenamed) {
    if (value != nullptr || name != flag) continue;
    value = std::getenv(Variable(old).c_str());
    if (value != nullptr) notes.push_back(Renamed(Variable(old), Variable(name)));
  }
  return value;
}

// Notes every variable QUANTD_... that is not read, so that its author learns that it has no
// effect.
void NoteUnknownVariables(const std::vector<Flag>& flags, std::vector<std::string>& notes) {
  std::vector<std::string> unknown;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const absl::string_view assignment = *entry;
    const std::string name(assignment.substr(0, assignment.find('=')));
    const auto is_of = [&name](absl::string_view flag) { return Variable(flag) == name; };
    if (!absl::StartsWith(name, kPrefix) || IsOfKubernetes(name)) continue;
    if (std::any_of(flags.begin(), flags.end(), [&](const Flag& f) { return is_of(f.name); }) ||
        std::any_of(std::begin(kRenamed), std::end(kRenamed),
                    [&](const auto& renamed) { return is_of(renamed.first); })) {
      continue;
    }
    unknown.push_back(name);
  }
  if (unknown.empty()) return;
  notes.push_back(absl::StrCat("ignored variables in the environment that are not flags: ",
                               absl::StrJoin(unknown, " ")));
}

absl::Status Set(const Flag& flag, absl::string_view source, const std::string& text) {
  const std::string wrong = flag.take(text);
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("invalid value '", text, "' for ", source, ": ", wrong));
}

absl::Status Parse(const std::vector<Flag>& flags, int argc, const char* const* argv,
                   CommandLine& line) {
  CLI::App app;
  app.set_version_flag("--version", "");
  std::vector<CLI::results_t> given(flags.size());
  for (size_t i = 0; i < flags.size(); ++i) {
    const auto keep = [&values = given[i]](const CLI::results_t& results) {
      values = results;
      return true;
    };
    app.add_option(absl::StrCat("--", flags[i].name), keep)
        ->type_name("value")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  std::vector<std::string> words = WordsOf(argc, argv, line.notes);
  std::reverse(words.begin(), words.end());  // the order that CLI11 expects
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    line.action = Action::kHelp;
    return absl::OkStatus();
  } catch (const CLI::CallForVersion&) {
    line.action = Action::kVersion;
    return absl::OkStatus();
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> left = app.remaining();
    return absl::InvalidArgumentError(
        left.empty() ? std::string(error.what())
                     : absl::StrCat("unexpected argument '", left.front(), "'; see --help"));
  }
  for (size_t i = 0; i < flags.size(); ++i) {
    const Flag& flag = flags[i];
    const char* const value = FromEnvironment(flag.name, line.notes);
    absl::Status status = Set(flag, "the default", flag.by_default);
    if (!given[i].empty()) {
      status = Set(flag, absl::StrCat("--", flag.name),
                   flag.is_list ? absl::StrJoin(given[i], ",") : given[i].back());
    } else if (value != nullptr) {
      status = Set(flag, Variable(flag.name), value);
    }
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
  const loop::Policy policy = options.policy();
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
  if (status.ok() && line.action == Action::kServe) status = Check(line.options, wanted);
  if (!status.ok()) return absl::InvalidArgumentError(OneLine(status.message()));
  if (line.action == Action::kServe) Complete(line.options, wanted);
  return line;
}

std::string HelpText() {
  std::string text =
      "quantd: quantizes tensors for any gRPC client.\n\n"
      "Each flag --some_name can also be given as QUANTD_SOME_NAME in the environment; the flag "
      "wins.\n\n";
  Options options;
  memory::Wanted wanted;
  for (const Flag& flag : Flags(options, wanted)) {
    absl::StrAppend(&text, "  --", flag.name, "  (", flag.by_default, ")\n      ", flag.help, "\n");
  }
  for (const auto& [old, name] : kRenamed) {
    absl::StrAppend(&text, "  --", old, "  ()\n      The old name of --", name,
                    ", for this release\n");
  }
  absl::StrAppend(&text,
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
