// Checks that the process can start its threads.
#ifndef QUANTD_SERVER_PROCESS_THREADS_H_
#define QUANTD_SERVER_PROCESS_THREADS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace quantd::process {

// Starts `count` threads that do nothing, keeps them alive at the same time, and ends them: 40 us
// each. Returns UNAVAILABLE, in one line with their purpose ("the log", the flags), if fewer can be
// started. The reason for the check: a thread that fails to start later ends the process.
absl::Status TryThreads(int count, absl::string_view purpose);

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_THREADS_H_
