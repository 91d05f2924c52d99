// traceparent as W3C defines it, and texts that only look like it.
#include "server/trace/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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

TEST(TraceParent, OnlyTheFirstFlagCounts) {
  const std::string begin = std::string(kGood).substr(0, 53);
  for (const auto& [flags, sampled] :
       {std::pair("00", false), {"02", false}, {"03", true}, {"ff", true}}) {
    const auto context = ParseTraceParent(begin + flags);
    ASSERT_TRUE(context.has_value()) << flags;
    EXPECT_EQ(context->sampled, sampled) << flags;
  }
}

TEST(TraceParent, LaterVersionsMayBeLonger) {
  const std::string rest = std::string(kGood).substr(2);
  EXPECT_TRUE(ParseTraceParent("cc" + rest).has_value());
  EXPECT_TRUE(ParseTraceParent("cc" + rest + "-what-the-future-holds").has_value());
  EXPECT_FALSE(ParseTraceParent("cc" + rest + "x").has_value());
  EXPECT_FALSE(ParseTraceParent("00" + rest + "-x").has_value());
  EXPECT_FALSE(ParseTraceParent("ff" + rest).has_value());
}

TEST(TraceParent, WhatIsMalformedIsNone) {
  for (size_t size = 0; size < sizeof(kGood) - 1; ++size) {
    EXPECT_FALSE(ParseTraceParent(std::string(kGood, size)).has_value()) << size;
  }
  EXPECT_FALSE(ParseTraceParent("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"));
  EXPECT_FALSE(ParseTraceParent("00-00000000000000000000000000000000-00f067aa0ba902b7-01"));
  EXPECT_FALSE(ParseTraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"));
  EXPECT_FALSE(ParseTraceParent(std::string(1 << 20, '0')));
  EXPECT_FALSE(ParseTraceParent(std::string(55, '\0')));
}

}  // namespace
}  // namespace quantd::trace
