// traceparent as W3C defines it, and texts that only look like it.
#include "server/trace/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace quantd::trace {
namespace {

constexpr char kGood[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceParent, IsReadAndWritten) {
  const auto context = ParseTraceParent(kGood);
  ASSERT_TRUE(context.has_value());
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(Hexadecimal(context->trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(TraceParent(*context), kGood);
}

TEST(ParseTraceParent, ReadsTheFirstFlagAndLaterVersions) {
  const std::string flags = std::string(kGood).substr(0, 53), rest = std::string(kGood).substr(2);
  const std::pair<std::string, bool> rows[] = {
      {flags + "00", false}, {flags + "02", false}, {flags + "03", true},
      {flags + "ff", true},  {"cc" + rest, true},   {"cc" + rest + "-what-the-future-holds", true}};
  for (const auto& [text, sampled] : rows) {
    const auto context = ParseTraceParent(text);
    ASSERT_TRUE(context.has_value()) << text;
    EXPECT_EQ(context->sampled, sampled) << text;
  }
  for (const std::string& text :
       {"cc" + rest + "x", "00" + rest + "-x", "ff" + rest,
        std::string("00-4BF92F3577B34DA6A3CE929D0E0E4736") + rest.substr(33),
        "00-" + std::string(32, '0') + rest.substr(33),
        "00" + rest.substr(0, 34) + std::string(16, '0') + "-01", std::string(1 << 20, '0'),
        std::string(55, '\0')}) {
    EXPECT_FALSE(ParseTraceParent(text).has_value()) << text.substr(0, 60);
  }
  for (size_t size = 0; size < sizeof(kGood) - 1; ++size) {
    EXPECT_FALSE(ParseTraceParent(std::string(kGood, size)).has_value()) << size;
  }
}

}  // namespace
}  // namespace quantd::trace
