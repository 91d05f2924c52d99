// SIGTERM, SIGINT and SIGHUP as something to wait for.
#ifndef QUANTD_SERVER_PROCESS_SIGNALS_H_
#define QUANTD_SERVER_PROCESS_SIGNALS_H_

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace quantd::process {

// Keeps SIGTERM, SIGINT and SIGHUP from interrupting this thread and those that it starts, and
// ignores SIGPIPE and SIGXFSZ (a write fails, too), SIGUSR1 and SIGUSR2, which would end the
// process and mean nothing here. Call before any thread starts.
void BlockSignals();

// Waits for SIGTERM, SIGINT or SIGHUP and returns its number. Meanwhile, at once and then after
// each `every`, calls `tick`, which should be short; never when `every` is 0.
int WaitForSignal(absl::Duration every, absl::FunctionRef<void()> tick);

// From now on the next SIGTERM or SIGINT ends the process at once, with exit code 128 + its number.
// It interrupts this thread; there may be no other one to be had for it.
void ExitAtNextSignal();

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_SIGNALS_H_
