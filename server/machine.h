// What the machine, or the container around the process, has.
#ifndef QUANTD_SERVER_MACHINE_H_
#define QUANTD_SERVER_MACHINE_H_

#include <cstdint>

namespace quantd::server {

// Bytes of memory that this process may use at most: the machine's, or the cgroup's limit (version
// 2 and 1) where that is lower.
uint64_t AvailableMemoryBytes();

}  // namespace quantd::server

#endif  // QUANTD_SERVER_MACHINE_H_
