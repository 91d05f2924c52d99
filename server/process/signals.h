// SIGTERM, SIGINT and SIGHUP as something to wait for.
#ifndef QUANTD_SERVER_PROCESS_SIGNALS_H_
#define QUANTD_SERVER_PROCESS_SIGNALS_H_

namespace quantd::process {

// Keeps SIGTERM, SIGINT and SIGHUP from interrupting this thread and those that it starts, and
// ignores SIGPIPE and SIGXFSZ (a write fails, too), SIGUSR1 and SIGUSR2, which would end the
// process and mean nothing here. Call before any thread starts.
void BlockSignals();

// Waits for SIGTERM, SIGINT or SIGHUP and returns its number.
int WaitForSignal();

// From now on the next SIGTERM or SIGINT ends the process at once, with exit code 128 + its number.
// It interrupts this thread; there may be no other one to be had for it.
void ExitAtNextSignal();

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_SIGNALS_H_
