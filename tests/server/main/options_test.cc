// Flags, their twins in the environment, and what is said about wrong ones. The command line as a
// whole is tested from outside (tests/e2e/test_start.py); Abseil's flags keep their values, so each
// test here gives every flag that it looks at.
#include "server/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <vector>

#include "server/machine.h"

namespace quantd::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<CommandLine> Parse(std::initializer_list<const char*> flags) {
  std::vector<const char*> argv = {"quantd"};
  argv.insert(argv.end(), flags);
  return ParseCommandLine(static_cast<int>(argv.size()), argv.data());
}

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Options, ARepeatedListFlagAddsUp) {
  const auto parsed = Parse({"--listen=127.0.0.1:1", "--listen", "[::1]:2,unix:/x"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(parsed->options.listen, ElementsAre("127.0.0.1:1", "[::1]:2", "unix:/x"));
}

TEST(Options, TheLastOfOtherRepeatedFlagsWins) {
  const auto parsed = Parse({"--listen=a:1", "--threads=3", "--threads=2"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options.threads, 2);
}

TEST(Options, TheFlagWinsOverTheEnvironment) {
  const Variable threads("QUANTD_THREADS", "7");
  const Variable queues("QUANTD_QUEUES", "5");
  const auto parsed = Parse({"--listen=a:1", "--queues=6"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options.threads, 7);
  EXPECT_EQ(parsed->options.queues, 6);
}

TEST(Options, ZeroMeansFindOut) {
  const auto parsed =
      Parse({"--listen=a:1", "--threads=0", "--queues=0", "--memory_budget_bytes=0"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_GE(parsed->options.threads, 1);
  EXPECT_GE(parsed->options.queues, 1);
  EXPECT_EQ(parsed->options.memory_budget_bytes, AvailableMemoryBytes() / 2);
  EXPECT_GT(parsed->options.memory_budget_bytes, 64u << 20);
}

TEST(Options, BoolFlags) {
  EXPECT_TRUE(Parse({"--listen=a:1", "--channelz"})->options.channelz);
  EXPECT_FALSE(Parse({"--listen=a:1", "--nochannelz"})->options.channelz);
  EXPECT_TRUE(Parse({"--listen=a:1", "--channelz=true"})->options.channelz);
  EXPECT_FALSE(Parse({"--listen=a:1", "--nolisten"}).ok());
}

TEST(Options, HelpAndVersion) {
  EXPECT_EQ(Parse({"--help"})->request, Request::kHelp);
  EXPECT_EQ(Parse({"--version"})->request, Request::kVersion);
  EXPECT_THAT(HelpText(), HasSubstr("--max_message_bytes  (67108864)"));
}

TEST(Options, EverythingWrongIsOneLine) {
  for (const std::initializer_list<const char*>& flags :
       std::initializer_list<std::initializer_list<const char*>>{
           {"--nothing"},
           {"-listen=a:1"},
           {"--"},
           {"x"},
           {"--threads"},
           {"--listen=a:1", "--threads=x"},
           {"--listen=a"},
           {"--listen=a:1", "--listen=:2"},
           {"--listen=unix:"},
           {"--listen=a:1", "--http_listen=unix:/x"}}) {
    const auto parsed = Parse(flags);
    ASSERT_FALSE(parsed.ok()) << *flags.begin();
    EXPECT_THAT(std::string(parsed.status().message()), Not(HasSubstr("\n")));
    // For the tests after this one.
    ASSERT_TRUE(Parse({"--listen=a:1", "--threads=0", "--http_listen="}).ok());
  }
}

}  // namespace
}  // namespace quantd::server
