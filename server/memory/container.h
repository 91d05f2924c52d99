// How much memory this process may use: the container's limit, or a part of the machine's memory.
#ifndef QUANTD_SERVER_MEMORY_CONTAINER_H_
#define QUANTD_SERVER_MEMORY_CONTAINER_H_

#include <cstdint>
#include <string>

namespace quantd::memory {

// The lowest memory limit of the process's cgroup and its ancestors (versions 2 and 1); 0 if there
// is none. `root` is prefixed to /proc and /sys, for tests.
uint64_t CgroupLimitBytes(const std::string& root);

// The container's limit, but at most the machine's memory. Without a container, half of the
// machine's memory, because the machine has other work to do.
uint64_t LimitBytes();

}  // namespace quantd::memory

#endif  // QUANTD_SERVER_MEMORY_CONTAINER_H_
