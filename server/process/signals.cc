// See signals.h.
#include "server/process/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <initializer_list>

namespace quantd::process {
namespace {

sigset_t TerminationSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

void BlockSignals() {
  const sigset_t signals = TerminationSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  for (const int ignored : {SIGPIPE, SIGXFSZ, SIGHUP, SIGUSR1, SIGUSR2}) signal(ignored, SIG_IGN);
}

int WaitForSignal(absl::Duration every, absl::FunctionRef<void()> tick) {
  const sigset_t signals = TerminationSignals();
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
  const sigset_t signals = TerminationSignals();
  for (const int number : {SIGTERM, SIGINT}) sigaction(number, &action, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace quantd::process
