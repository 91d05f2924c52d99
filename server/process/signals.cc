#include "server/process/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <initializer_list>

namespace quantd::process {
namespace {

// The signals that the process waits for.
sigset_t AwaitedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
  return signals;
}

}  // namespace

void BlockSignals() {
  const sigset_t signals = AwaitedSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // Ignored signals are not delivered even to sigwait; nohup, for example, ignores SIGHUP.
  signal(SIGHUP, SIG_DFL);
  for (const int ignored : {SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2}) signal(ignored, SIG_IGN);
}

int WaitForSignal(absl::Duration every, absl::FunctionRef<void()> tick) {
  const sigset_t signals = AwaitedSignals();
  const timespec pause = absl::ToTimespec(every);
  for (;;) {
    if (every > absl::ZeroDuration()) tick();
    const int number = every > absl::ZeroDuration() ? sigtimedwait(&signals, nullptr, &pause)
                                                    : sigwaitinfo(&signals, nullptr);
    if (number > 0) return number;
  }
}

void ExitAtNextSignal() {
  struct sigaction action{};
  action.sa_handler = [](int number) { _exit(128 + number); };
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT}) {
    sigaction(number, &action, nullptr);
    sigaddset(&signals, number);
  }
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace quantd::process
