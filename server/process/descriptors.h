// Descriptors: how many the process may have, and the first three.
#ifndef QUANTD_SERVER_PROCESS_DESCRIPTORS_H_
#define QUANTD_SERVER_PROCESS_DESCRIPTORS_H_

#include <cstdint>

namespace quantd::process {

// Raises the soft limit to the hard one: every connection is a descriptor, and the usual soft limit
// of 1,024 is for programs that use select. Returns what the limit is then.
int64_t RaiseDescriptorLimit();

// Opens those of standard input, output and error that are closed, as /dev/null: else the next
// sockets would get their numbers, and a client what is meant for the log. Call first of all.
void OpenStandardDescriptors();

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_DESCRIPTORS_H_
