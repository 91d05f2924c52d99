// A process that crashes while the reader of its log is slow.
#include "server/log/crash.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/log/log.h"

namespace quantd::log {
namespace {

using ::testing::HasSubstr;

TEST(Crash, WhatWasLoggedBeforeComesFirst) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's own handler is there";
#endif
  constexpr int kLines = 100;  // more than the pipe can take
  int ends[2], about[2];       // of the log, and of what the child is about to do
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(about, O_CLOEXEC), 0);
  ASSERT_GE(fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
  const pid_t child = fork();
  if (child == 0) {
    InstallCrashHandler({.version = "1", .descriptor = ends[1]});
    Start({.format = Format::kText, .descriptor = ends[1]});
    for (int i = 0; i < kLines; ++i) Info("before", {{"i", i}, {"filler", std::string(100, 'x')}});
    if (write(about[1], "x", 1) == 1) raise(SIGILL);
    _exit(0);
  }
  for (const int fd : {ends[1], about[1]}) close(fd);
  char byte;
  ASSERT_EQ(read(about[0], &byte, 1), 1);  // and reads no line before
  std::string text;
  char bytes[4096];
  for (ssize_t count; (count = read(ends[0], bytes, sizeof(bytes))) > 0;) {
    text.append(bytes, static_cast<size_t>(count));
  }
  for (const int fd : {ends[0], about[0]}) close(fd);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGILL) << status;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  ASSERT_GT(lines.size(), kLines + 2u) << text;
  for (size_t i = 0; i < kLines; ++i) {
    EXPECT_THAT(lines[i], HasSubstr(absl::StrCat(" before i=", i, " ")));
  }
  EXPECT_THAT(lines[kLines], HasSubstr(" error: crashed signal=SIGILL "));
  EXPECT_THAT(lines[kLines + 1], HasSubstr(" error: frame n=0 "));
}

}  // namespace
}  // namespace quantd::log
