// The descriptors of the process, of which the first three are special, and its threads.
#ifndef QUANTD_SERVER_PROCESS_LIMITS_H_
#define QUANTD_SERVER_PROCESS_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace quantd::process {

// Raises the soft limit to the hard limit: every connection is a descriptor, and the usual soft
// limit of 1,024 is for programs that use select. Returns the new limit.
int64_t RaiseDescriptorLimit();

// Opens standard input, output and error as /dev/null where they are closed. Otherwise sockets
// would get their numbers, and a client would receive the log. Call this before everything else.
void OpenStandardDescriptors();

// Starts `count` threads that do nothing, keeps them alive at the same time, and ends them: 40 us
// each. Returns UNAVAILABLE, in one line with their purpose ("the log", the flags), if fewer can be
// started. The reason for the check: a thread that fails to start later ends the process.
absl::Status TryThreads(int count, absl::string_view purpose);

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_LIMITS_H_
