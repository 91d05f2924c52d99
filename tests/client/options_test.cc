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

TEST_F(OptionsTest, AddressComesFromTheEnvironmentUnlessGiven) {
  EXPECT_EQ(Parse({"health"})->options.address, "");
  setenv("QUANTD_ADDRESS", "unix:/a", 1);
  EXPECT_EQ(Parse({"health"})->options.address, "unix:/a");
  unsetenv("QUANTD_ADDRESS");
}

// In every command that has the flag: they share the variable that it sets.
TEST_F(OptionsTest, FlagsWinOverTheEnvironment) {
  setenv("QUANTD_ADDRESS", "unix:/a", 1);
  setenv("QUANTD_SIMD", "scalar", 1);
  const auto address = [](std::vector<const char*> words) {
    words.push_back("--address=b:1");
    const auto line = Parse(std::move(words));
    return line.ok() ? line->options.address : std::string(line.status().message());
  };
  EXPECT_EQ(address({"health"}), "b:1");
  EXPECT_EQ(address({"info"}), "b:1");
  EXPECT_EQ(address({"quantize", "x.npy", "-o", "y.npy"}), "b:1");
  EXPECT_EQ(address({"dequantize", "x.npy", "-o", "y.npy"}), "b:1");
  EXPECT_EQ(address({"inspect", "x.npy"}), "b:1");
  EXPECT_EQ(Parse({"quantize", "x.npy", "-o", "y.npy", "--simd=avx2"})->options.simd, "avx2");
  unsetenv("QUANTD_SIMD");
  unsetenv("QUANTD_ADDRESS");
}

TEST_F(OptionsTest, WrongUsageIsOneLineThatNamesIt) {
  const auto text = [](std::vector<const char*> words) {
    const auto line = Parse(std::move(words));
    EXPECT_FALSE(line.ok());
    const std::string message(line.status().message());
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  };
  EXPECT_THAT(text({}), HasSubstr("no command"));
  EXPECT_THAT(text({""}), HasSubstr("no command ''"));
  EXPECT_THAT(text({"quantise"}), HasSubstr("'quantise', did you mean quantize"));
  EXPECT_THAT(text({"quantize", "x.npy", "-o", "y.npy", "--colour=red"}),
              HasSubstr("--colour=red"));
  EXPECT_THAT(text({"quantize", "x.npy", "-o", "y.npy", "--blok_size=2"}),
              HasSubstr("did you mean --block_size"));
  EXPECT_THAT(text({"--hepl"}), HasSubstr("did you mean --help; see quantctl --help"));
  EXPECT_THAT(text({"health", "--scale=1"}), HasSubstr("unknown flag"));  // not of this command
  EXPECT_THAT(text({"quantize", "x.npy", "-o", "y.npy", "--axis=one"}),
              HasSubstr("--axis: one is not a whole number"));
  EXPECT_THAT(text({"quantize", "x.npy", "-o", "y.npy", "--axis"}), HasSubstr("--axis"));
  EXPECT_THAT(text({"quantize", "x.npy", "-o", "y.npy", "--axis=99999999999999999999"}),
              HasSubstr("--axis"));
  EXPECT_THAT(text({"quantize", "x.npy", "-o", "y.npy", "-v"}), HasSubstr("'-v'"));
  EXPECT_THAT(text({"quantize", "x.npy", "-o", "y.npy", "--non_finite=maybe"}),
              HasSubstr("--non_finite"));
  EXPECT_THAT(text({"quantize", "x.npy", "-o", "y.npy", "--threads=-1"}), HasSubstr("--threads"));
  EXPECT_THAT(text({"quantize", "x.npy", "-o", "y.npy", "--timeout=nan"}), HasSubstr("--timeout"));
  EXPECT_THAT(text({"quantize", "x.npy"}), HasSubstr("--output"));
  EXPECT_THAT(text({"calibrate", "x.npy", "-o", "y.npy", "--method=percentle"}),
              HasSubstr("did you mean percentile"));
  EXPECT_THAT(text({"inspect", "a.npy", "b.npy"}), HasSubstr("'b.npy' is one file too many"));
}

// As in Python.
TEST_F(OptionsTest, CalibrationIsByMinMaxUnlessSaid) {
  const auto line = Parse({"calibrate", "x.npy", "-o", "r.npy"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.calibrate.method, "min_max");
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
