// Waiting for a signal, with something to do meanwhile.
#include "server/process/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace quantd::process {
namespace {

TEST(WaitForSignalTest, EndsOnlyWithASignalThatMeansSomething) {
  BlockSignals();
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    kill(getpid(), number);
    EXPECT_EQ(WaitForSignal(absl::ZeroDuration(), [] { ADD_FAILURE() << "a tick"; }), number);
    int ticks = 0;
    const auto tick = [&] {
      for (const int none : {SIGUSR1, SIGUSR2, SIGPIPE}) kill(getpid(), none);
      if (++ticks == 5) kill(getpid(), number);
    };
    EXPECT_EQ(WaitForSignal(absl::Milliseconds(1), tick), number);
    EXPECT_EQ(ticks, 5);
  }
}

}  // namespace
}  // namespace quantd::process
