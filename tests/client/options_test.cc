// The command line and its help.
#include "commands/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace quantd::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<CommandLine> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "quantctl");
  return ParseCommandLine(static_cast<int>(words.size()), words.data());
}

class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() { unsetenv("QUANTD_ADDRESS"); }
};

TEST_F(OptionsTest, FlagsInEveryForm) {
  const auto line =
      Parse({"quantize", "--type=int8", "in.npy", "-o", "out.npy", "--axis", "-1", "--symmetric",
             "--noreport_error", "--block_shape=1,-1", "--block_shape=3", "--type=int4"});
  ASSERT_TRUE(line.ok()) << line.status();
  const Options& options = line->options;
  EXPECT_EQ(options.command, "quantize");
  EXPECT_EQ(options.input, "in.npy");
  EXPECT_EQ(options.output, "out.npy");
  EXPECT_EQ(options.spec.type, "int4");  // the last one counts
  EXPECT_EQ(options.spec.axis, -1);
  EXPECT_TRUE(options.spec.symmetric);
  EXPECT_FALSE(options.spec.report_error);
  EXPECT_TRUE(options.spec.saturate);
  EXPECT_THAT(options.spec.block_shape, ElementsAre(1, -1, 3));
  EXPECT_FALSE(options.force);
}

// In every command that has the flag: they share the variable that it sets.
TEST_F(OptionsTest, FlagsWinOverTheEnvironment) {
  setenv("QUANTD_ADDRESS", "unix:/a", 1);
  setenv("QUANTD_SIMD", "scalar", 1);
  EXPECT_EQ(Parse({"health"})->options.address, "unix:/a");
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"health", "--address=b:1"},
        {"info", "--address=b:1"},
        {"quantize", "x.npy", "-o", "y.npy", "--address=b:1"},
        {"dequantize", "x.npy", "-o", "y.npy", "--address=b:1"},
        {"inspect", "x.npy", "--address=b:1"}}) {
    const auto line = Parse(words);
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_EQ(line->options.address, "b:1") << words[0];
  }
  EXPECT_EQ(Parse({"quantize", "x.npy", "-o", "y.npy", "--simd=avx2"})->options.simd, "avx2");
  unsetenv("QUANTD_SIMD");
  unsetenv("QUANTD_ADDRESS");
  EXPECT_EQ(Parse({"health"})->options.address, "");
}

TEST_F(OptionsTest, WrongUsageIsOneLineThatNamesIt) {
  const std::pair<std::vector<const char*>, const char*> rows[] = {
      {{}, "no command"},
      {{""}, "no command ''"},
      {{"quantise"}, "'quantise', did you mean quantize"},
      {{"--hepl"}, "did you mean --help; see quantctl --help"},
      {{"health", "--scale=1"}, "unknown flag"},  // not of this command
      {{"quantize", "x.npy"}, "--output"},
      {{"calibrate", "x.npy", "-o", "y.npy", "--method=percentle"}, "did you mean percentile"},
      {{"inspect", "a.npy", "b.npy"}, "'b.npy' is one file too many"},
  };
  const auto message = [](const std::vector<const char*>& words) {
    const auto line = Parse(words);
    EXPECT_FALSE(line.ok());
    EXPECT_EQ(line.status().message().find('\n'), absl::string_view::npos);
    return std::string(line.status().message());
  };
  for (const auto& [words, said] : rows) EXPECT_THAT(message(words), HasSubstr(said));
  const std::pair<const char*, const char*> flags[] = {
      {"--colour=red", "--colour=red"},
      {"--blok_size=2", "did you mean --block_size"},
      {"--axis=one", "--axis: one is not a whole number"},
      {"--axis", "--axis"},
      {"--axis=99999999999999999999", "--axis"},
      {"-v", "'-v'"},
      {"--non_finite=maybe", "--non_finite"},
      {"--threads=-1", "--threads"},
      {"--timeout=nan", "--timeout"},
  };
  for (const auto& [flag, said] : flags) {
    EXPECT_THAT(message({"quantize", "x.npy", "-o", "y.npy", flag}), HasSubstr(said));
  }
}

// With - or _, in capitals or not.
TEST_F(OptionsTest, SpellingsThatAreTheSame) {
  const auto line = Parse({"calibrate", "x.npy", "-o", "r.npy", "--state-out=s", "--method=Min-Max",
                           "--non-finite=IGNORE", "--only=--keep-dashes"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.calibrate.state_out, "s");
  EXPECT_EQ(line->options.calibrate.method, "min_max");
  EXPECT_EQ(line->options.spec.non_finite, "ignore");
  EXPECT_EQ(line->options.only, "--keep-dashes");
  EXPECT_EQ(Parse({"calibrate", "x.npy", "-o", "r.npy"})->options.calibrate.method, "min_max");
  EXPECT_FALSE(
      Parse({"quantize", "x.npy", "-o", "y.npy", "--no-report-error"})->options.spec.report_error);
}

TEST_F(OptionsTest, HelpIsThereForEveryCommand) {
  const std::string all = Parse({"--help"})->text;
  EXPECT_EQ(Parse({"help"})->text, all);
  EXPECT_THAT(Parse({"--version"})->text, HasSubstr("quantctl "));
  for (const char* command : {"quantize", "dequantize", "inspect", "info", "health"}) {
    EXPECT_THAT(all, HasSubstr(command));
    EXPECT_THAT(Parse({"help", command})->text, HasSubstr("Exit code"));
    EXPECT_THAT(Parse({command, "--help"})->text, HasSubstr("--json"));
  }
  EXPECT_THAT(Parse({"quantize", "--type=x", "--help"})->text, HasSubstr("--block_shape"));
}

}  // namespace
}  // namespace quantd::cli
