// What the process asks for before it serves: in a process of its own, which its exit code judges.
#include "server/process/limits.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace quantd::process {
namespace {

// A socket that is the standard output would get what a library prints.
TEST(LimitsDeathTest, NoStandardDescriptorStaysFree) {
  const auto open_and_judge = [] {
    for (const int closed : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(closed);
    close(3);
    OpenStandardDescriptors();
    const bool good = fcntl(STDIN_FILENO, F_GETFD) >= 0 && fcntl(STDOUT_FILENO, F_GETFD) >= 0 &&
                      fcntl(STDERR_FILENO, F_GETFD) >= 0 && fcntl(3, F_GETFD) < 0;
    _exit(good ? 0 : 1);
  };
  EXPECT_EXIT(open_and_judge(), testing::ExitedWithCode(0), "");
}

TEST(LimitsDeathTest, TheLimitOfDescriptorsIsRaisedToWhatIsAllowed) {
  const auto raise_and_judge = [] {
    const rlimit few = {100, 200};
    rlimit raised = {};
    const bool good = setrlimit(RLIMIT_NOFILE, &few) == 0 && RaiseDescriptorLimit() == 200 &&
                      getrlimit(RLIMIT_NOFILE, &raised) == 0 && raised.rlim_cur == 200 &&
                      RaiseDescriptorLimit() == 200;
    _exit(good ? 0 : 1);
  };
  EXPECT_EXIT(raise_and_judge(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace quantd::process
