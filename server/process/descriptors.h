// How many descriptors the process may have.
#ifndef QUANTD_SERVER_PROCESS_DESCRIPTORS_H_
#define QUANTD_SERVER_PROCESS_DESCRIPTORS_H_

#include <cstdint>

namespace quantd::process {

// Raises the soft limit to the hard one: every connection is a descriptor, and the usual soft limit
// of 1,024 is for programs that use select. Returns what the limit is then.
int64_t RaiseDescriptorLimit();

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_DESCRIPTORS_H_
