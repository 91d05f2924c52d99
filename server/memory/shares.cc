#include "server/memory/shares.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "quantd/cgroup.h"

namespace quantd::memory {
namespace {

// "max" is not a number, and version 1 expresses "none" by a number larger than any machine's
// memory.
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
  for (const std::string& folder : CgroupFolders(root, "memory")) {
    Limit(absl::StrCat(folder, "/memory.max"), smallest);             // version 2
    Limit(absl::StrCat(folder, "/memory.limit_in_bytes"), smallest);  // version 1
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
