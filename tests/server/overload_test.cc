// When overload begins and ends, and how many requests were refused in between.
#include "server/overload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace quantd::server {
namespace {

using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

size_t Index(absl::string_view label) {
  size_t index = 0;
  while (metrics::kRejections[index].label != label) ++index;
  return index;
}

class OverloadTest : public testing::Test {
 protected:
  OverloadTest() : fd_(memfd_create("log", MFD_CLOEXEC)) {
    log::Start({.format = log::Format::kText, .descriptor = fd_});
  }
  ~OverloadTest() override { close(fd_); }

  void Look(int second) { overload_.Look(begin_ + seconds(second), counts_); }
  void Reject(absl::string_view label, uint64_t count) { counts_[Index(label)] += count; }
  std::vector<std::string> Lines() {
    log::Stop(seconds(20));
    std::string text(1 << 16, '\0');
    const ssize_t size = pread(fd_, text.data(), text.size(), 0);
    text.resize(static_cast<size_t>(size));
    return absl::StrSplit(text, '\n', absl::SkipEmpty());
  }

 private:
  const int fd_;
  const Overload::Clock::time_point begin_ = Overload::Clock::now();
  Overload overload_;
  Overload::Counts counts_ = {};
};

TEST_F(OverloadTest, IsTwoLinesHoweverManyRequests) {
  Look(0);
  Reject("queue_full", 7);
  Look(1);
  for (int second = 2; second < 20; ++second) {
    Reject("queue_full", 1000);
    if (second == 10) Reject("queue_timeout", 3);
    Look(second);
  }
  for (int second = 20; second < 40; ++second) Look(second);
  const std::vector<std::string> lines = Lines();
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[0], EndsWith("warn: overload begins queue_full=7"));
  EXPECT_THAT(lines[1],
              EndsWith("warn: overload is over queue_full=18007 queue_timeout=3 seconds=18"));
}

TEST_F(OverloadTest, AShortPauseIsPartOfIt) {
  for (int second = 1; second < 30; second += 4) {
    Reject("receiving_full", 1);
    Look(second);
    Look(second + 1);
    Look(second + 3);
  }
  EXPECT_THAT(Lines(), SizeIs(1));
}

TEST_F(OverloadTest, EachHasItsOwnCounts) {
  for (int begin = 0; begin < 30; begin += 10) {
    Reject("too_many_calls", 2);
    Look(begin + 1);
    Look(begin + 9);
  }
  const std::vector<std::string> lines = Lines();
  ASSERT_THAT(lines, SizeIs(6));
  for (const std::string& line : lines) EXPECT_THAT(line, HasSubstr(" too_many_calls=2"));
}

TEST_F(OverloadTest, WhatIsNotOfLoadIsNone) {
  Reject("over_budget", 5);
  Reject("message_too_large", 5);
  Reject("draining", 5);
  Look(1);
  EXPECT_THAT(Lines(), IsEmpty());
}

}  // namespace
}  // namespace quantd::server
