// File descriptors: the process's limit, and the first three.
#ifndef QUANTD_SERVER_PROCESS_DESCRIPTORS_H_
#define QUANTD_SERVER_PROCESS_DESCRIPTORS_H_

#include <cstdint>

namespace quantd::process {

// Raises the soft limit to the hard limit: every connection is a descriptor, and the usual soft
// limit of 1,024 is for programs that use select. Returns the new limit.
int64_t RaiseDescriptorLimit();

// Opens standard input, output and error as /dev/null where they are closed. Otherwise sockets
// would get their numbers, and a client would receive the log. Call this before everything else.
void OpenStandardDescriptors();

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_DESCRIPTORS_H_
