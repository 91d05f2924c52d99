// See container.h.
#include "server/memory/container.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace quantd::memory {
namespace {

// "max" is no number, and version 1 says "none" by one that no machine has.
void Limit(const std::string& path, uint64_t& smallest) {
  std::ifstream file(path);
  std::string line;
  uint64_t bytes = 0;
  if (!std::getline(file, line) || !absl::SimpleAtoi(line, &bytes) || bytes == 0) return;
  if (bytes >= uint64_t{1} << 62) return;
  if (smallest == 0 || bytes < smallest) smallest = bytes;
}

}  // namespace

uint64_t CgroupLimitBytes(const std::string& root) {
  uint64_t smallest = 0;
  std::ifstream memberships(absl::StrCat(root, "/proc/self/cgroup"));
  std::string line;
  while (std::getline(memberships, line)) {
    // "0::/path" (v2) or "4:memory:/path" (v1).
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const bool v2 = fields[1].empty();
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    if (!v2 && std::find(controllers.begin(), controllers.end(), "memory") == controllers.end()) {
      continue;
    }
    const std::vector<std::string> mounts =
        v2 ? std::vector<std::string>{"", "/unified"} : std::vector<std::string>{"/memory"};
    const absl::string_view file = v2 ? "/memory.max" : "/memory.limit_in_bytes";
    for (const std::string& mount : mounts) {
      // Every ancestor may have a limit of its own. In a container the path may be the host's while
      // the mount shows the container's own group at its top: then only the last round finds files.
      for (std::string path = fields[2];; path.resize(path.rfind('/'))) {
        if (path == "/") path.clear();
        Limit(absl::StrCat(root, "/sys/fs/cgroup", mount, path, file), smallest);
        if (path.rfind('/') == std::string::npos) break;
      }
    }
  }
  return smallest;
}

uint64_t LimitBytes() {
  const uint64_t machine =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t container = CgroupLimitBytes("");
  return container == 0 ? machine / 2 : std::min(container, machine);
}

}  // namespace quantd::memory
