// The queue and its thread: readers that stop, pipes that close, disks that are full.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/log/log.h"

namespace quantd::log {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

class Pipe {
 public:
  Pipe() {
    signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0);
  }
  ~Pipe() {
    CloseReader();
    CloseWriter();
  }
  int writer() const { return ends_[1]; }
  void CloseReader() { Close(ends_[0]); }
  void CloseWriter() { Close(ends_[1]); }
  // What is there, until nothing more arrives for a while.
  std::string Read(milliseconds quiet = milliseconds(300)) {
    std::string text;
    for (;;) {
      pollfd polled = {ends_[0], POLLIN, 0};
      if (poll(&polled, 1, static_cast<int>(quiet.count())) <= 0) return text;
      char bytes[4096];
      const ssize_t count = read(ends_[0], bytes, sizeof(bytes));
      if (count <= 0) return text;
      text.append(bytes, static_cast<size_t>(count));
    }
  }

 private:
  static void Close(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
  int ends_[2] = {-1, -1};
};

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

TEST(Logger, LinesOfManyThreadsComeWhole) {
  Pipe pipe;
  Start({.format = Format::kJson, .descriptor = pipe.writer()});
  std::string text;
  std::thread reader([&] { text = pipe.Read(seconds(5)); });
  std::vector<std::thread> writers;
  for (int thread = 0; thread < 4; ++thread) {
    writers.emplace_back([thread] {
      for (int i = 0; i < 100; ++i) {
        Info("event", {{"thread", thread}, {"i", i}});
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  Stop(seconds(20));
  pipe.CloseWriter();
  reader.join();
  const std::vector<std::string> lines = Lines(text);
  EXPECT_THAT(lines, SizeIs(400));
  for (const std::string& line : lines) {
    EXPECT_TRUE(line.front() == '{' && line.back() == '}') << line;
  }
  EXPECT_EQ(Written(), 400u);
  EXPECT_EQ(CountLost().full + CountLost().failed, 0u);
}

TEST(Logger, NobodyWaitsForAReaderThatHasStopped) {
  Pipe pipe;
  Start({.format = Format::kText, .descriptor = pipe.writer()});
  // Many times more than the pipe and the queue can take.
  constexpr uint64_t kLines = 20'000;
  const auto begin = steady_clock::now();
  for (uint64_t i = 0; i < kLines; ++i) {
    Info("event", {{"i", i}, {"filler", std::string(100, 'x')}});
  }
  EXPECT_LT(steady_clock::now() - begin, seconds(20));
  EXPECT_GT(CountLost().full, kLines / 2);
  // The reader comes back: it gets the newest lines, and the number of those that were dropped.
  std::string text;
  std::thread reader([&] { text = pipe.Read(seconds(2)); });
  Stop(seconds(20));
  pipe.CloseWriter();
  reader.join();
  EXPECT_THAT(text, HasSubstr("warn: log lines were lost lines="));
  EXPECT_THAT(text, HasSubstr(absl::StrCat(" i=", kLines - 1, " ")));
  EXPECT_EQ(Written() + CountLost().full, kLines);
}

TEST(Logger, AClosedPipeAndAFullDiskAreCounted) {
  Pipe pipe;
  pipe.CloseReader();
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  for (const int broken : {pipe.writer(), full, -1}) {
    Start({.format = Format::kText, .descriptor = broken});
    for (int i = 0; i < 10; ++i) Info("event");
    Stop(broken < 0 ? milliseconds(100) : seconds(20));
    EXPECT_EQ(CountLost().failed, 10u);
    EXPECT_EQ(Written(), 0u);
  }
  close(full);
}

TEST(Logger, AReaderThatIsSlowGetsEveryLineThatFits) {
  Pipe pipe;
  Start({.format = Format::kText, .descriptor = pipe.writer()});
  constexpr size_t kLines = 512;  // half of those that may wait
  for (size_t i = 0; i < kLines; ++i) {
    Info("event", {{"i", i}, {"filler", std::string(1000, 'x')}});
  }
  std::string text;
  std::thread reader([&] {
    while (Lines(text).size() < kLines) {
      const std::string more = pipe.Read(milliseconds(20));
      text += more;
    }
  });
  Stop(seconds(30));
  reader.join();
  EXPECT_THAT(Lines(text), SizeIs(kLines));
}

}  // namespace
}  // namespace quantd::log
