// The format of lines, and that no text in a field can break it.
#include "server/log/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"

namespace quantd::log {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const absl::Time kTime = absl::FromUnixMillis(1'700'000'000'123);

TEST(Format, ALineOfText) {
  EXPECT_EQ(FormatLine(Style::kText, kTime, Level::kInfo, "listening",
                       {{"grpc", "127.0.0.1:1,[::1]:2"}, {"pid", 7}, {"ready_file", ""}}),
            "2023-11-14T22:13:20.123Z quantd: listening grpc=127.0.0.1:1,[::1]:2 pid=7 "
            "ready_file=");
  EXPECT_EQ(FormatLine(Style::kText, kTime, Level::kWarn, "call failed",
                       {{"late", true}, {"peer", "a \"b\\\n"}}),
            R"(2023-11-14T22:13:20.123Z quantd: warn: call failed late=true peer="a \"b\\\x0a")");
}

TEST(Format, ALineOfJson) {
  EXPECT_EQ(FormatLine(Style::kJson, kTime, Level::kError, "call failed",
                       {{"peer", "a\"b"}, {"code", 13}, {"late", false}, {"share", 0.5}}),
            R"({"time":"2023-11-14T22:13:20.123Z","level":"error","message":"call failed",)"
            R"("peer":"a\"b","code":13,"late":false,"share":0.5})");
}

TEST(Format, TheJournalGetsPrioritiesAndATerminalColours) {
  EXPECT_EQ(FormatLine(Style::kJournal, kTime, Level::kError, "x", {}), "<3>error: x");
  EXPECT_EQ(FormatLine(Style::kJournal, kTime, Level::kInfo, "x", {}), "<6>x");
  EXPECT_THAT(FormatLine(Style::kTerminal, kTime, Level::kWarn, "x", {}), HasSubstr("\x1b[33m"));
  EXPECT_THAT(FormatLine(Style::kTerminal, kTime, Level::kInfo, "x", {{"a", "\x1b[31m"}}),
              Not(HasSubstr("\x1b")));
}

TEST(Format, StylesAreChosenByTheDescriptor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(StyleFor(Format::kAuto, ends[1]), Style::kText);
  EXPECT_EQ(StyleFor(Format::kJson, ends[1]), Style::kJson);
  setenv("JOURNAL_STREAM", "1:1", 1);  // another process's
  EXPECT_EQ(StyleFor(Format::kAuto, ends[1]), Style::kText);
  struct stat status = {};
  ASSERT_EQ(fstat(ends[1], &status), 0);
  setenv("JOURNAL_STREAM", absl::StrCat(status.st_dev, ":", status.st_ino).c_str(), 1);
  EXPECT_EQ(StyleFor(Format::kAuto, ends[1]), Style::kJournal);
  EXPECT_EQ(StyleFor(Format::kText, ends[1]), Style::kText);
  unsetenv("JOURNAL_STREAM");
  close(ends[0]);
  close(ends[1]);
}

// Every byte, pairs that are not UTF-8, and marks that change the direction of text.
TEST(Format, NoByteGetsOutThatIsNotPrintableAscii) {
  for (const Style style : {Style::kText, Style::kTerminal, Style::kJournal, Style::kJson}) {
    for (int first = 0; first < 256; ++first) {
      for (const absl::string_view rest :
           {"", "x", "\x80", "\xff", "\xe2\x80\xae", "\n{\"a\":1}"}) {
        const std::string value = absl::StrCat(std::string(1, static_cast<char>(first)), rest);
        const std::string line =
            FormatLine(style, kTime, Level::kInfo, "x", {{"a", value}, {"b", "end"}});
        for (const char c : line) {
          ASSERT_TRUE(absl::ascii_isprint(static_cast<unsigned char>(c))) << first;
        }
        if (style == Style::kJson) {
          const auto parsed = nlohmann::json::parse(line, nullptr, false);
          ASSERT_TRUE(parsed.is_object()) << line;
          ASSERT_EQ(parsed["b"], "end") << line;
        } else {
          ASSERT_THAT(line, EndsWith(" b=end"));
        }
      }
    }
  }
}

TEST(Format, LongValuesAndLinesAreCut) {
  for (const Style style : {Style::kText, Style::kJson}) {
    Fields fields;
    for (int i = 0; i < 30; ++i) fields.emplace_back("name", std::string(1 << 20, '\n'));
    fields.emplace_back("last", "x");
    const std::string line = FormatLine(style, kTime, Level::kInfo, "event", fields);
    EXPECT_LT(line.size(), kMostLine);
    EXPECT_THAT(line, HasSubstr("cut"));
    EXPECT_EQ(nlohmann::json::accept(line), style == Style::kJson);
    const std::string one = FormatLine(style, kTime, Level::kInfo, "event",
                                       {{"name", std::string(kMostValue + 1, 'x')}, {"b", 1}});
    EXPECT_THAT(one, HasSubstr("xxx..."));
    EXPECT_THAT(one, Not(HasSubstr("cut")));
  }
}

}  // namespace
}  // namespace quantd::log
