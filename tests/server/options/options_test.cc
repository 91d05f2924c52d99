// Flags, their variables in the environment, and the errors of wrong ones. The command line as a
// whole is tested from outside (tests/e2e/test_start.py).
#include "server/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/log/format.h"
#include "server/memory/shares.h"

namespace quantd::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<CommandLine> Parse(std::vector<const char*> flags) {
  flags.insert(flags.begin(), "quantd");
  return ParseCommandLine(static_cast<int>(flags.size()), flags.data());
}

// As a server writes them to its log.
std::string LineOf(const Options& options) {
  return log::FormatLine(log::Style::kText, absl::UnixEpoch(), log::Level::kInfo, "configuration",
                         Describe(options));
}

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(ParseCommandLine, TheFlagWinsOverTheEnvironment) {
  const Variable threads("QUANTD_THREADS", "7");
  const Variable loops("QUANTD_EVENT_LOOPS", "5");
  const auto parsed = Parse({"--listen=a:1", "--event_loops=6"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options.threads, 7);
  EXPECT_EQ(parsed->options.event_loops, 6);
}

TEST(ParseCommandLine, ZeroMeansFindOut) {
  const auto parsed =
      Parse({"--listen=a:1", "--threads=0", "--event_loops=0", "--max_connections=0",
             "--memory_budget_bytes=0", "--receive_budget_bytes=0", "--max_message_bytes=1048576"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Options& options = parsed->options;
  EXPECT_GE(options.threads, 1);
  EXPECT_GE(options.event_loops, 1);
  EXPECT_LE(options.event_loops, 64);
  EXPECT_GE(options.max_connections, 64);
  EXPECT_LE(options.max_connections, 1024);
  EXPECT_EQ(options.memory.limit, memory::LimitBytes());
  // This machine is not one of the smallest.
  EXPECT_GT(options.memory.requests, 4U << 20);
  EXPECT_GT(options.memory.receiving, 4U << 20);
  EXPECT_LE(options.memory.most(), options.memory.limit);
  EXPECT_EQ(options.memory.max_message, 1U << 20);
  EXPECT_FALSE(options.memory.limited_by_receiving);
}

TEST(ParseCommandLine, MemoryIsDividedAsItIsTold) {
  const auto parsed = Parse({"--listen=a:1", "--threads=2", "--event_loops=3",
                             "--max_connections=100", "--max_inflight_requests=10",
                             "--max_queued_requests=20", "--memory_budget_bytes=30000000",
                             "--receive_budget_bytes=8000000", "--max_message_bytes=67108864"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Options& options = parsed->options;
  EXPECT_EQ(options.max_calls(), 10 + 20 + 100 + 256);
  EXPECT_EQ(options.memory.requests, 30'000'000U);
  EXPECT_EQ(options.memory.receiving, 8'000'000U);
  EXPECT_EQ(options.memory.max_message, 7'000'000U);
  EXPECT_TRUE(options.memory.limited_by_receiving);
  // Memory is left for the known numbers of threads, connections and calls.
  const uint64_t limit = memory::LimitBytes();
  const uint64_t threads = options.policy().threads();
  EXPECT_EQ(options.memory.idle, memory::kProcessBytes + threads * memory::kThreadBytes +
                                     100 * memory::kConnectionBytes + 386 * memory::kCallBytes +
                                     limit / 16);
  ASSERT_TRUE(Parse({"--listen=a:1", "--memory_budget_bytes=0", "--receive_budget_bytes=0"}).ok());
}

TEST(ParseCommandLine, TimesAreSecondsOrHaveAUnit) {
  const std::tuple<const char*, absl::Duration> cases[] = {{"2", absl::Seconds(2)},
                                                           {"0.5", absl::Milliseconds(500)},
                                                           {"500ms", absl::Milliseconds(500)},
                                                           {"1m", absl::Minutes(1)},
                                                           {"1h", absl::Hours(1)},
                                                           {"1m30s", absl::Seconds(90)},
                                                           {"2.5s", absl::Milliseconds(2500)},
                                                           {"1e1", absl::Seconds(10)}};
  for (const auto& [text, time] : cases) {
    const auto parsed = Parse({"--listen=a:1", "--queue_timeout", text});
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->options.queue_timeout, time) << text;
  }
  const Variable grace("QUANTD_MAX_CONNECTION_AGE_GRACE", "1500ms");
  const auto parsed =
      Parse({"--listen=a:1", "--queue_timeout=0", "--stall_timeout=500ms", "--keepalive_time=1m",
             "--max_connection_age=2h", "--lame_duck_seconds=3", "--drain_seconds=1m"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options.queue_timeout, absl::ZeroDuration());
  EXPECT_EQ(parsed->options.stall_timeout, absl::Milliseconds(500));
  EXPECT_EQ(parsed->options.keepalive, absl::Minutes(1));
  EXPECT_EQ(parsed->options.max_connection_age, absl::Hours(2));
  EXPECT_EQ(parsed->options.max_connection_age_grace, absl::Milliseconds(1500));
  EXPECT_EQ(parsed->options.lame_duck, absl::Seconds(3));
  EXPECT_EQ(parsed->options.drain, absl::Minutes(1));
}

// Each is refused by name, and a wrong value does not affect the next command line.
TEST(ParseCommandLine, NamesTheFlagThatIsOutOfRange) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"max_message_bytes", "1023", "1024"},
      {"max_message_bytes", "2147483648", "1048576"},
      {"memory_budget_bytes", "-1", "0"},
      {"receive_budget_bytes", "-1", "0"},
      {"receive_budget_bytes", "131071", "131072"},  // two first windows
      {"receive_budget_bytes", "1125899906842625", "0"},
      {"max_inflight_requests", "0", "1"},
      {"max_queued_requests", "-1", "0"},
      {"queue_timeout", "-1ms", "0"},
      {"queue_timeout", "inf", "30"},
      {"queue_timeout", "8785h", "8784h"},
      {"stall_timeout", "499ms", "0.5"},
      {"stall_timeout", "nan", "5"},
      {"stall_timeout", "5 seconds", "5"},
      {"stall_timeout", "", "5"},
      {"max_connections", "-1", "0"},
      {"max_connections", "1048577", "1048576"},
      {"max_streams", "0", "100"},
      {"keepalive_time", "0", "60"},
      {"keepalive_time", "999ms", "1s"},
      {"max_connection_age", "-5", "0"},
      {"max_connection_age_grace", "1d", "30"},
      {"threads", "1025", "0"},
      {"event_loops", "-1", "0"},
      {"busy_poll_us", "1001", "1000"},
      {"lame_duck_seconds", "-1", "0"},
      {"drain_seconds", "1e300", "30"}};
  for (const auto& [flag, bad, good] : cases) {
    const std::string wrong = absl::StrCat("--", flag, "=", bad);
    const auto refused = Parse({"--listen=a:1", wrong.c_str()});
    EXPECT_FALSE(refused.ok()) << wrong;
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(absl::StrCat("--", flag)));
    const auto parsed = Parse({"--listen=a:1", absl::StrCat("--", flag, "=", good).c_str()});
    EXPECT_TRUE(parsed.ok()) << parsed.status();
  }
  // Without rounding: 2.14748e+09 is both the largest allowed and the first refused value.
  EXPECT_THAT(std::string(Parse({"--max_message_bytes=2147483648"}).status().message()),
              HasSubstr("1024 to 2147483647"));
  ASSERT_TRUE(Parse({"--listen=a:1", "--max_connections=0", "--max_message_bytes=1048576"}).ok());
}

TEST(ParseCommandLine, ModesAreOctalAndLetTheServerIn) {
  const std::pair<const char*, uint32_t> good[] = {
      {"0600", 0600}, {"0660", 0660}, {"777", 0777}, {"00607", 0607}};
  for (const auto& [text, mode] : good) {
    const std::string flag = std::string("--socket_mode=") + text;
    const auto parsed = Parse({"--listen=a:1", flag.c_str()});
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->options.socket_mode, mode) << text;
  }
  for (const char* text : {"", "0577", "1000", "0668", "06x0", "-600", "000660"}) {
    const std::string flag = std::string("--socket_mode=") + text;
    EXPECT_FALSE(Parse({"--listen=a:1", flag.c_str()}).ok()) << text;
  }
}

TEST(ParseCommandLine, HelpVersionAndCheck) {
  EXPECT_EQ(Parse({"--help"})->action, Action::kHelp);
  EXPECT_EQ(Parse({"--version"})->action, Action::kVersion);
  EXPECT_EQ(Parse({"--check", "--threads=2"})->action, Action::kCheck);
  EXPECT_FALSE(Parse({"--check", "--threads=x"}).ok());
  for (const char* line : {"--max_message_bytes  (64MiB)", "--queue_timeout  (30)"}) {
    EXPECT_THAT(HelpText("1.2.3"), HasSubstr(line));
  }
}

// So that a server's log contains all of its settings.
TEST(Describe, HasEveryFlag) {
  const auto parsed =
      Parse({"--listen=a:1,unix:/x", "--stall_timeout=700ms", "--ready_file=/x\ny"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const std::string described = absl::StrCat(LineOf(parsed->options), " ");
  int flags = 0;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(HelpText("1.2.3"), '\n'))) {
    if (!absl::StartsWith(line, "  --") || !absl::StrContains(line, "  (")) continue;
    const std::string flag = line.substr(4, line.find("  (") - 4);
    ++flags;
    EXPECT_THAT(described, HasSubstr(absl::StrCat(" ", flag, "=")));
  }
  EXPECT_GE(flags, 20);
  EXPECT_THAT(described, HasSubstr(" listen=a:1,unix:/x "));
  EXPECT_THAT(described, HasSubstr(" stall_timeout=0.7 "));
  EXPECT_THAT(described, HasSubstr(" ready_file=\"/x\\x0ay\" "));
}

TEST(ParseCommandLine, TakesDashesAndSuggestsWhatWasMeant) {
  EXPECT_EQ(Parse({"--event-loops=4"})->options.event_loops, 4);
  EXPECT_EQ(Parse({"--http-listen", "a-b:1"})->options.http_listen, "a-b:1");
  const std::pair<const char*, const char*> cases[] = {
      {"--hlep", "did you mean --help?"},
      {"--thread=2", "did you mean --threads?"},
      {"--max_mesage_bytes=1", "did you mean --max_message_bytes?"},
      {"--nothing", "see --help"}};
  for (const auto& [flag, said] : cases) {
    EXPECT_THAT(std::string(Parse({flag}).status().message()), HasSubstr(said)) << flag;
  }
  const Variable misspelt("QUANTD_TREADS", "1");
  const Variable port("QUANTD_HTTP_PORT", "9464");
  const Variable other("QUANTDX_LISTN", "1");
  ASSERT_EQ(Parse({})->notes.size(), 1U);
  EXPECT_THAT(Parse({})->notes[0], HasSubstr("QUANTD_TREADS (did you mean QUANTD_THREADS?)"));
  EXPECT_THAT(Parse({})->notes[0], HasSubstr("QUANTD_HTTP_PORT"));
  EXPECT_THAT(Parse({})->notes[0], Not(HasSubstr("QUANTDX")));
}

TEST(ParseCommandLine, SizesHaveUnits) {
  const std::pair<const char*, uint64_t> good[] = {
      {"2097152", 2097152}, {"2MiB", 2097152},  {"2Mi", 2097152},
      {"2 MiB", 2097152},   {"2MB", 2000000},   {"2M", 2000000},
      {"0.5GiB", 1 << 29},  {"1024k", 1024000}, {"1048576B", 1048576}};
  for (const auto& [text, bytes] : good) {
    const auto parsed = Parse({"--max_message_bytes", text});
    ASSERT_TRUE(parsed.ok()) << text << parsed.status();
    EXPECT_EQ(parsed->options.memory.max_message, bytes) << text;
  }
  for (const char* text : {"", "MiB", "2x", "2ib", "2i", "1.5", "2MiBB", "2MMB", "nanMiB", "infGB",
                           "9e99TiB", "3GiB", "-1MiB", "0x10KiB", "1e3KiB"}) {
    EXPECT_FALSE(Parse({"--max_message_bytes", text}).ok()) << text;
  }
}

TEST(ParseCommandLine, ListsWhatDiffersFromTheDefault) {
  const Variable threads("QUANTD_THREADS", "2");
  EXPECT_THAT(Parse({"--max_streams=7", "--event_loops=0"})->changed,
              ElementsAre("--max_streams=7", "--threads=2"));
}

TEST(ParseCommandLine, AnErrorIsOneLine) {
  const std::vector<const char*> lines[] = {{"--nothing"},
                                            {"-listen=a:1"},
                                            {"x"},
                                            {"--threads"},
                                            {"--listen=a:1", "--threads=x"},
                                            {"--listen=a"},
                                            {"--listen=a:1", "--listen=:2"},
                                            {"--listen=unix:"},
                                            {"--listen=a:1", "--http_listen=unix:/x"},
                                            {"--threads=1\n2"},
                                            {"stray\n"},
                                            {"--listen=a\tb"},
                                            {"--\r"}};
  for (const std::vector<const char*>& flags : lines) {
    const std::string message(Parse(flags).status().message());
    EXPECT_NE(message, "") << flags.back();
    EXPECT_EQ(message.find_first_of("\n\t\r"), std::string::npos) << message;
    // For the tests that follow.
    ASSERT_TRUE(Parse({"--listen=a:1", "--threads=0", "--http_listen="}).ok());
  }
}

}  // namespace
}  // namespace quantd::server
