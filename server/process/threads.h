// Whether the process can have its threads.
#ifndef QUANTD_SERVER_PROCESS_THREADS_H_
#define QUANTD_SERVER_PROCESS_THREADS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace quantd::process {

// Starts `count` threads that do nothing, has them live at the same time, and ends them: 40 us
// each. UNAVAILABLE, in one line that says what they are for ("the log", the flags), when there
// are fewer to be had: a thread that cannot be started later ends the process.
absl::Status TryThreads(int count, absl::string_view purpose);

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_THREADS_H_
