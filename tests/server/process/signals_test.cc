// Waiting for a signal, with something to do meanwhile.
#include "server/process/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace quantd::process {
namespace {

TEST(SignalsTest, TheTickGoesOnUntilASignalComes) {
  BlockSignals();
  int ticks = 0;
  EXPECT_EQ(WaitForSignal(absl::Milliseconds(1),
                          [&ticks] {
                            if (++ticks == 5) kill(getpid(), SIGTERM);
                          }),
            SIGTERM);
  EXPECT_EQ(ticks, 5);
}

TEST(SignalsTest, WithoutAnIntervalThereIsNoTick) {
  BlockSignals();
  kill(getpid(), SIGINT);
  EXPECT_EQ(WaitForSignal(absl::ZeroDuration(), [] { ADD_FAILURE(); }), SIGINT);
}

TEST(SignalsTest, SighupIsWaitedFor) {
  BlockSignals();
  kill(getpid(), SIGHUP);
  EXPECT_EQ(WaitForSignal(absl::ZeroDuration(), [] { ADD_FAILURE(); }), SIGHUP);
}

TEST(SignalsTest, SignalsThatMeanNothingEndNoWait) {
  BlockSignals();
  int ticks = 0;
  EXPECT_EQ(WaitForSignal(absl::Milliseconds(1),
                          [&ticks] {
                            ++ticks;
                            for (const int number : {SIGUSR1, SIGUSR2, SIGPIPE}) {
                              kill(getpid(), number);
                            }
                            if (ticks == 3) kill(getpid(), SIGTERM);
                          }),
            SIGTERM);
  EXPECT_EQ(ticks, 3);
}

}  // namespace
}  // namespace quantd::process
