// Waiting for SIGTERM, SIGINT and SIGHUP.
#ifndef QUANTD_SERVER_PROCESS_SIGNALS_H_
#define QUANTD_SERVER_PROCESS_SIGNALS_H_

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace quantd::process {

// Blocks SIGTERM, SIGINT and SIGHUP in this thread and the threads that it starts. Ignores SIGPIPE
// and SIGXFSZ (the write fails, too), and SIGUSR1 and SIGUSR2, which would end the process and have
// no meaning here. Call before any thread starts.
void BlockSignals();

// Waits for SIGTERM, SIGINT or SIGHUP and returns its number. Until then it calls `tick`, which
// should be short, at once and after each `every`; never if `every` is 0.
int WaitForSignal(absl::Duration every, absl::FunctionRef<void()> tick);

// From now on, the next SIGTERM or SIGINT ends the process at once, with exit code 128 + its
// number. The signal interrupts this thread, because it may be impossible to start another one for
// it.
void ExitAtNextSignal();

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_SIGNALS_H_
