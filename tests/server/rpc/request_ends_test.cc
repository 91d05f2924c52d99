// What is expected of the next request, by what has been learned.
#include "server/rpc/request_ends.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace quantd::rpc {
namespace {

constexpr uint64_t kPeer = 7;
constexpr size_t kSize = 1000;

TEST(RequestEnds, AreExpectedOnceTheyRepeat) {
  RequestEnds ends;
  EXPECT_FALSE(ends.Expected(kPeer, kSize, 0).has_value());
  EXPECT_FALSE(ends.Expected(kPeer, kSize, 3).has_value());
  ends.Learn(kPeer, kSize, "one");
  EXPECT_FALSE(ends.Expected(kPeer, kSize, 3).has_value());
  ends.Learn(kPeer, kSize, "one");
  EXPECT_EQ(ends.Expected(kPeer, kSize, 3), "one");
  EXPECT_FALSE(ends.Expected(kPeer, kSize, 2).has_value());
  EXPECT_FALSE(ends.Expected(kPeer, kSize + 1, 3).has_value());
  EXPECT_FALSE(ends.Expected(kPeer + 1, kSize, 3).has_value());
}

TEST(RequestEnds, AreNotExpectedWhileTheyChange) {
  RequestEnds ends;
  for (const char* const end : {"one", "one", "two", "one", "two"}) ends.Learn(kPeer, kSize, end);
  EXPECT_FALSE(ends.Expected(kPeer, kSize, 3).has_value());
  ends.Learn(kPeer, kSize, "two");
  EXPECT_EQ(ends.Expected(kPeer, kSize, 3), "two");
}

TEST(RequestEnds, OfSeveralSizes) {
  RequestEnds ends;
  for (int i = 0; i < 2; ++i) {
    for (size_t size = 1; size <= 8; ++size) ends.Learn(kPeer, size, std::to_string(size));
  }
  int expected = 0;  // some may share a place
  for (size_t size = 1; size <= 8; ++size) {
    const std::optional<std::string> end = ends.Expected(kPeer, size, 1);
    if (!end.has_value()) continue;
    EXPECT_EQ(*end, std::to_string(size));
    ++expected;
  }
  EXPECT_GE(expected, 4);
}

TEST(RequestEnds, LongOnesAreNotKept) {
  RequestEnds ends;
  for (const size_t size : {RequestEnds::kMostBytes, RequestEnds::kMostBytes + 1}) {
    for (int i = 0; i < 2; ++i) ends.Learn(kPeer, kSize + size, std::string(size, 'x'));
    EXPECT_EQ(ends.Expected(kPeer, kSize + size, size).has_value(),
              size == RequestEnds::kMostBytes);
  }
}

}  // namespace
}  // namespace quantd::rpc
