// The log as a whole: levels, and events at a limited rate.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/log/log.h"

namespace quantd::log {
namespace {

using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Clock = std::chrono::steady_clock;

// The log of this process, written to a file without a name while this object lives.
class OpenLog {
 public:
  explicit OpenLog(Level level) : fd_(memfd_create("log", MFD_CLOEXEC)) {
    Start({.level = level, .format = Format::kText, .descriptor = fd_});
  }
  std::vector<std::string> Close() {
    Stop(std::chrono::seconds(20));
    std::string text(1 << 20, '\0');
    const ssize_t size = pread(fd_, text.data(), text.size(), 0);
    text.resize(static_cast<size_t>(size));
    return absl::StrSplit(text, '\n', absl::SkipEmpty());
  }
  ~OpenLog() { close(fd_); }

 private:
  const int fd_;
};

TEST(Log, BeforeItStartsLinesGoNowhere) {
  EXPECT_FALSE(Enabled(Level::kError));
  Error("event");
  Repeated repeated(Level::kError, "event");
  repeated.Write([]() -> Fields {
    ADD_FAILURE();
    return {};
  });
}

TEST(Log, LevelsBelowAreNotWritten) {
  OpenLog log(Level::kWarn);
  EXPECT_FALSE(Enabled(Level::kInfo));
  Info("no");
  Warn("yes");
  Error("yes");
  EXPECT_THAT(log.Close(), SizeIs(2));
  EXPECT_FALSE(Enabled(Level::kError));
}

TEST(Repeated, TellsHowManyItLeftOut) {
  for (const uint64_t left_out : {1, 312}) {
    OpenLog log(Level::kInfo);
    Repeated repeated(Level::kInfo, "call failed", 3);
    const uint64_t before = CountLost().repeated;
    for (uint64_t i = 0; i < 3 + left_out; ++i) {
      repeated.Write([&] { return Fields{{"i", i}}; });
    }
    TellLeftOut();  // the window is not over
    EXPECT_EQ(CountLost().repeated - before, left_out);
    const std::vector<std::string> lines = log.Close();
    ASSERT_THAT(lines, SizeIs(4));
    EXPECT_THAT(lines[2], HasSubstr(" call failed i=2"));
    EXPECT_THAT(lines[3], EndsWith(absl::StrCat(" call failed, and ", left_out,
                                                " more like it left_out=", left_out)));
  }
}

TEST(Repeated, EveryWindowHasItsLines) {
  OpenLog log(Level::kInfo);
  Repeated repeated(Level::kInfo, "event", 2);
  const Clock::time_point begin = Clock::now();
  int taken = 0;
  for (int window = 0; window < 3; ++window) {
    for (int i = 0; i < 100; ++i)
      taken += repeated.Take(begin + window * Repeated::kWindow) ? 1 : 0;
  }
  EXPECT_EQ(taken, 6);
  repeated.TellLeftOut(begin + 3 * Repeated::kWindow, false);
  const std::vector<std::string> lines = log.Close();
  EXPECT_THAT(lines, SizeIs(3));
  EXPECT_THAT(lines, Each(HasSubstr("and 98 more like it")));
}

TEST(Repeated, ManyThreadsLoseNoCount) {
  OpenLog log(Level::kInfo);
  Repeated repeated(Level::kInfo, "event", 5);
  const uint64_t before = CountLost().repeated;
  std::atomic<uint64_t> written{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) {
        repeated.Write([&]() -> Fields {
          written.fetch_add(1);
          return {};
        });
        if (i % 100 == 0) TellLeftOut();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // If two threads begin a window at the same time, each may write a line too many or too few.
  EXPECT_GE(written.load(), 5u);
  EXPECT_LE(written.load(), 20u);
  EXPECT_EQ(written.load() + CountLost().repeated - before, 40'000u);
  EXPECT_THAT(log.Close(), Not(IsEmpty()));
}

}  // namespace
}  // namespace quantd::log
