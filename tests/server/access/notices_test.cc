#include "server/access/notices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace quantd::access {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

TEST(Notices, WriteAFewAndCountTheRest) {
  std::vector<std::string> lines;
  Notices notices("things", [&](absl::string_view line) { lines.emplace_back(line); });
  const auto begin = Notices::Clock::now();
  for (int i = 0; i < 100; ++i) notices.Add(std::to_string(i), begin);
  EXPECT_THAT(lines, ElementsAre("0", "1", "2", "3", "4"));
  notices.Tick(begin + seconds(9));
  EXPECT_EQ(lines.size(), 5U);
  notices.Tick(begin + seconds(11));
  EXPECT_EQ(lines.back(), "things: 95 more in 11 s, not shown");
  notices.Tick(begin + seconds(50));
  EXPECT_EQ(lines.size(), 6U);
  notices.Add("next", begin + seconds(60));
  EXPECT_EQ(lines.back(), "next");
}

}  // namespace
}  // namespace quantd::access
