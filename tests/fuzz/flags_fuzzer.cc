// Any arguments and environment: strings with a zero between them, of which those that begin with
// QUANTD_ go into the environment.
//
// Held to: no crash; what is accepted is made of the flags of --help and within their bounds; an
// error is one line that says which argument, flag or variable is meant.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "fuzzing.h"
#include "server/log/format.h"
#include "server/options/options.h"

namespace quantd::fuzz {

uint64_t useful_inputs = 0;

namespace {

// Every flag, as --help has them.
const std::vector<std::string>& Names() {
  static const auto* const names = [] {
    auto* found = new std::vector<std::string>;
    const std::string help = server::HelpText();
    for (absl::string_view line : absl::StrSplit(help, '\n')) {
      if (!absl::ConsumePrefix(&line, "  --")) continue;
      const std::string name(line.substr(0, line.find(' ')));
      if (name != "help" && name != "version") found->push_back(name);
    }
    return found;
  }();
  return *names;
}

bool IsFlag(absl::string_view name) {
  return std::find(Names().begin(), Names().end(), name) != Names().end();
}

// Said a second time, in the shortest way: whether arguments are flags and their values.
bool AreFlags(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view text = arguments[i];
    if (!absl::ConsumePrefix(&text, "--")) return false;
    const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (!IsFlag(parts[0])) return false;
    if (parts.size() == 1 && ++i == arguments.size()) return false;
  }
  return true;
}

void RequireNames(const std::string& message) {
  Require(!message.empty(), "an error says what is wrong");
  for (const char byte : message) {
    Require(!absl::ascii_iscntrl(static_cast<unsigned char>(byte)), "an error is one line");
  }
  for (const char* stranger : {"' is no flag", "unknown flag '", "unknown variable QUANTD_"}) {
    if (absl::StrContains(message, stranger)) return;
  }
  for (const std::string& name : Names()) {
    if (absl::StrContains(message, absl::StrCat("--", name))) return;
    if (absl::StrContains(message, absl::StrCat("QUANTD_", absl::AsciiStrToUpper(name)))) return;
  }
  Require(false, absl::StrCat("an error names a flag: ", message));
}

std::string RandomValue(Random& random) {
  const char* const values[] = {"0",       "1",
                                "-1",      "64",
                                "1048576", "1e300",
                                "2m",      "500ms",
                                "inf",     "nan",
                                "",        "true",
                                "a:1",     "[::1]:2",
                                "unix:",   "unix:/x",
                                ":1",      "a:1,b:2",
                                "0x10",    "\x80\xff",
                                "a\nb",    "999999999999999999999",
                                "avx2",    "-0.5s",
                                "60",      "2147483648"};
  return values[Below(random, std::size(values))];
}

// Gives the flags back the values that they had. Abseil's FlagSaver logs each.
class KeptFlags {
 public:
  KeptFlags() {
    for (const std::string& name : Names()) {
      values_.push_back(absl::FindCommandLineFlag(name)->CurrentValue());
    }
  }
  ~KeptFlags() {
    std::string error;
    for (size_t i = 0; i < values_.size(); ++i) {
      const bool set = absl::FindCommandLineFlag(Names()[i])->ParseFrom(values_[i], &error);
      Require(set, error);
    }
  }

 private:
  std::vector<std::string> values_;
};

}  // namespace

std::string RandomInput(Random& random) {
  std::string input;
  for (uint64_t count = Below(random, 4); count > 0; --count) {
    std::string name = Names()[Below(random, Names().size())];
    // Values that are good, mostly: a single wrong one hides all others.
    std::string value = OneIn(random, 5) ? RandomValue(random) : "1";
    if (absl::StrContains(name, "listen")) value = OneIn(random, 8) ? value : "a:1";
    if (name == "max_message_bytes" && !OneIn(random, 8)) value = "4096";
    std::string argument = absl::StrCat("--", name, OneIn(random, 4) ? std::string(1, '\0') : "=");
    if (OneIn(random, 4)) argument = absl::StrCat("QUANTD_", absl::AsciiStrToUpper(name), "=");
    if (OneIn(random, 30)) argument = absl::StrCat("--no", name, std::string(1, '\0'));
    argument += value;
    if (OneIn(random, 20)) argument[Below(random, argument.size())] = static_cast<char>(random());
    input += argument;
    input.push_back('\0');
  }
  return input;
}

}  // namespace quantd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quantd;
  using fuzz::Require;
  const fuzz::KeptFlags kept;
  const absl::string_view all(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> arguments, variables;
  for (const absl::string_view text : absl::StrSplit(absl::StripSuffix(all, {"\0", 1}), '\0')) {
    const size_t equals = text.find('=');
    if (absl::StartsWith(text, "QUANTD_") && equals != absl::string_view::npos) {
      variables.emplace_back(text.substr(0, equals));
      setenv(variables.back().c_str(), std::string(text.substr(equals + 1)).c_str(), 1);
    } else if (size > 0) {
      arguments.emplace_back(text);
    }
  }
  std::vector<const char*> argv = {"quantd"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  const auto parsed = server::ParseCommandLine(static_cast<int>(argv.size()), argv.data());
  for (const std::string& variable : variables) unsetenv(variable.c_str());

  if (!parsed.ok()) {
    Require(absl::IsInvalidArgument(parsed.status()), "it is the caller's fault");
    fuzz::RequireNames(std::string(parsed.status().message()));
    return 0;
  }
  if (parsed->action == server::Action::kServe) {
    const server::Options& options = parsed->options;
    Require(fuzz::AreFlags(arguments), "what is accepted are flags and their values");
    Require(!options.listen.empty(), "there is somewhere to listen");
    Require(options.threads >= 1 && options.queues >= 1, "there is somebody to work");
    Require(options.max_connections >= 1 && options.max_inflight_requests >= 1, "and work");
    const memory::Shares& memory = options.memory;
    Require(memory.requests >= 1 && memory.receiving >= 1, "there is memory");
    Require(memory.max_message <= memory.receiving, "the largest message has a place");
    Require(memory.most() >= memory.requests, "the sum does not overflow");
    Require(options.drain >= absl::ZeroDuration() && options.drain < absl::InfiniteDuration(),
            "times are finite");
    for (const char byte : log::FormatFields(server::Describe(options))) {
      Require(!absl::ascii_iscntrl(static_cast<unsigned char>(byte)),
              "the log has one line for them");
    }
  }
  ++fuzz::useful_inputs;
  return 0;
}
