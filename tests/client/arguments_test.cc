// The command line and its help.
#include "arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "flags.h"

namespace quantd::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ArgumentsTest : public ::testing::Test {
 protected:
  ArgumentsTest() { unsetenv("QUANTD_ADDRESS"); }
  absl::StatusOr<Arguments> Parse(std::vector<const char*> words) {
    words.insert(words.begin(), "quantctl");
    return ParseArguments(static_cast<int>(words.size()), words.data());
  }
  absl::FlagSaver saver_;
};

TEST_F(ArgumentsTest, FlagsInEveryForm) {
  const auto arguments =
      Parse({"quantize", "--type=int8", "in.npy", "-o", "out.npy", "--axis", "-1", "--symmetric",
             "--noreport_error", "--block_shape=1,2", "--block_shape=3"});
  ASSERT_TRUE(arguments.ok()) << arguments.status();
  EXPECT_EQ(arguments->command, "quantize");
  EXPECT_THAT(arguments->files, ElementsAre("in.npy"));
  EXPECT_EQ(absl::GetFlag(FLAGS_type), "int8");
  EXPECT_EQ(absl::GetFlag(FLAGS_output), "out.npy");
  EXPECT_EQ(absl::GetFlag(FLAGS_axis), -1);
  EXPECT_TRUE(absl::GetFlag(FLAGS_symmetric));
  EXPECT_FALSE(absl::GetFlag(FLAGS_report_error));
  EXPECT_THAT(absl::GetFlag(FLAGS_block_shape), ElementsAre("1", "2", "3"));
}

TEST_F(ArgumentsTest, AddressComesFromTheEnvironmentUnlessGiven) {
  setenv("QUANTD_ADDRESS", "unix:/a", 1);
  ASSERT_TRUE(Parse({"health"}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_address), "unix:/a");
  ASSERT_TRUE(Parse({"health", "--address=b:1"}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_address), "b:1");
  unsetenv("QUANTD_ADDRESS");
}

TEST_F(ArgumentsTest, WrongUsageIsOneLineThatNamesIt) {
  const auto text = [this](std::vector<const char*> words) {
    const auto arguments = Parse(std::move(words));
    EXPECT_FALSE(arguments.ok());
    const std::string message(arguments.status().message());
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  };
  EXPECT_THAT(text({}), HasSubstr("no command"));
  EXPECT_THAT(text({"quantise"}), HasSubstr("'quantise'"));
  EXPECT_THAT(text({"quantize", "x.npy", "--colour=red"}), HasSubstr("--colour=red"));
  EXPECT_THAT(text({"health", "--scale=1"}), HasSubstr("unknown flag"));  // of another command
  EXPECT_THAT(text({"quantize", "x.npy", "--axis=one"}), HasSubstr("--axis='one'"));
  EXPECT_THAT(text({"quantize", "x.npy", "--axis"}), HasSubstr("needs a value"));
  EXPECT_THAT(text({"quantize", "x.npy", "-v"}), HasSubstr("'-v'"));
  EXPECT_THAT(text({"quantize"}), HasSubstr("usage: quantctl quantize IN -o OUT"));
  EXPECT_THAT(text({"inspect", "a.npy", "b.npy"}), HasSubstr("usage"));
}

TEST_F(ArgumentsTest, HelpIsThereForEveryCommandAndFlag) {
  EXPECT_EQ(Parse({"--help"})->command, "help");
  EXPECT_EQ(Parse({"help"})->command, "help");
  EXPECT_THAT(Parse({"help", "info"})->files, ElementsAre("info"));
  EXPECT_THAT(Parse({"quantize", "--type=x", "--help"})->files, ElementsAre("quantize"));
  const std::string all = HelpText("");
  std::string flags;
  for (const char* command : {"quantize", "dequantize", "inspect", "info", "health"}) {
    EXPECT_THAT(all, HasSubstr(command));
    const std::string help = HelpText(command);
    EXPECT_THAT(help, HasSubstr("Exit code"));
    flags += help;
  }
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (flag->Filename().find("client/cli/flags.cc") == std::string::npos) continue;
    EXPECT_THAT(flags, HasSubstr("\n  --" + std::string(name)));
  }
}

}  // namespace
}  // namespace quantd::cli
