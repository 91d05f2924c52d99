// See machine.h.
#include "server/machine.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace quantd::server {

uint64_t AvailableMemoryBytes() {
  uint64_t bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  // Inside a container the root of the mounted hierarchy is the container's own group. "max" does
  // not parse and leaves the machine's size.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    uint64_t limit = 0;
    if (std::ifstream(path) >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

}  // namespace quantd::server
