// How much memory this process may take: the container's limit, or a part of the machine's.
#ifndef QUANTD_SERVER_MEMORY_CONTAINER_H_
#define QUANTD_SERVER_MEMORY_CONTAINER_H_

#include <cstdint>
#include <string>

namespace quantd::memory {

// The lowest memory limit of the process's own cgroup and those around it (version 2 and 1), at any
// depth; 0: none. `root` stands before /proc and /sys, for tests.
uint64_t CgroupLimitBytes(const std::string& root);

// The container's limit, never more than the machine has. Without a container half of the machine:
// it has other work to do.
uint64_t LimitBytes();

}  // namespace quantd::memory

#endif  // QUANTD_SERVER_MEMORY_CONTAINER_H_
