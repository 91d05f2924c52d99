// The queue and its thread: readers that stop, pipes that close, disks that are full.
#include "server/log/logger.h"

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
  Logger logger(pipe.writer(), Format::kJson);
  std::string text;
  std::thread reader([&] { text = pipe.Read(seconds(5)); });
  std::vector<std::thread> writers;
  for (int thread = 0; thread < 4; ++thread) {
    writers.emplace_back([&logger, thread] {
      for (int i = 0; i < 100; ++i) {
        logger.Write(Level::kInfo, "event", {{"thread", thread}, {"i", i}});
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_TRUE(logger.Close(seconds(20)));
  pipe.CloseWriter();
  reader.join();
  const std::vector<std::string> lines = Lines(text);
  EXPECT_THAT(lines, SizeIs(400));
  for (const std::string& line : lines) {
    EXPECT_TRUE(line.front() == '{' && line.back() == '}') << line;
  }
  EXPECT_EQ(logger.written(), 400u);
  EXPECT_EQ(logger.dropped() + logger.failed(), 0u);
}

TEST(Logger, NobodyWaitsForAReaderThatHasStopped) {
  Pipe pipe;
  Logger logger(pipe.writer(), Format::kText);
  // Many times more than the pipe and the queue can take.
  constexpr uint64_t kLines = 20'000;
  const auto begin = steady_clock::now();
  for (uint64_t i = 0; i < kLines; ++i) {
    logger.Write(Level::kInfo, "event", {{"i", i}, {"filler", std::string(100, 'x')}});
  }
  EXPECT_LT(steady_clock::now() - begin, seconds(20));
  EXPECT_GT(logger.dropped(), kLines / 2);
  // The reader comes back: it gets the newest lines, and the number of those that were dropped.
  std::string text;
  std::thread reader([&] { text = pipe.Read(seconds(2)); });
  EXPECT_TRUE(logger.Close(seconds(20)));
  pipe.CloseWriter();
  reader.join();
  EXPECT_THAT(text, HasSubstr("warn: log lines were lost lines="));
  EXPECT_THAT(text, HasSubstr(absl::StrCat(" i=", kLines - 1, " ")));
  EXPECT_EQ(logger.written() + logger.dropped(), kLines);
}

TEST(Logger, AClosedPipeAndAFullDiskAreCounted) {
  Pipe pipe;
  pipe.CloseReader();
  Logger closed(pipe.writer(), Format::kText);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  Logger disk(full, Format::kText);
  Logger nothing(-1, Format::kText);
  for (Logger* const logger : {&closed, &disk}) {
    for (int i = 0; i < 10; ++i) logger->Write(Level::kInfo, "event", {});
    EXPECT_TRUE(logger->Close(seconds(20)));
    EXPECT_EQ(logger->failed(), 10u);
    EXPECT_EQ(logger->written(), 0u);
  }
  nothing.Write(Level::kInfo, "event", {});
  nothing.Close(milliseconds(100));
  EXPECT_EQ(nothing.written(), 0u);
  close(full);
}

TEST(Logger, AReaderThatIsSlowGetsEveryLineThatFits) {
  Pipe pipe;
  Logger logger(pipe.writer(), Format::kText);
  constexpr size_t kLines = Logger::kMostWaiting / 2;
  for (size_t i = 0; i < kLines; ++i) {
    logger.Write(Level::kInfo, "event", {{"i", i}, {"filler", std::string(1000, 'x')}});
  }
  std::string text;
  std::thread reader([&] {
    while (Lines(text).size() < kLines) {
      const std::string more = pipe.Read(milliseconds(20));
      text += more;
    }
  });
  EXPECT_TRUE(logger.Close(seconds(30)));
  reader.join();
  EXPECT_THAT(Lines(text), SizeIs(kLines));
}

}  // namespace
}  // namespace quantd::log
