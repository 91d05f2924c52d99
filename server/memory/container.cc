// See container.h.
#include "server/memory/container.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

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

// Where a hierarchy's groups are files.
struct Mount {
  std::string group;   // the one that the mount shows at its top; "" is all
  std::string folder;  // where it is mounted
};

std::string WithoutEnd(absl::string_view path) {
  return std::string(path == "/" ? absl::string_view() : path);
}

// Of /proc/self/mountinfo: "31 23 0:26 GROUP FOLDER OPTIONS - TYPE SOURCE SUPER_OPTIONS".
std::vector<Mount> MountsOf(const std::string& root, bool v2) {
  std::vector<Mount> mounts;
  std::ifstream file(absl::StrCat(root, "/proc/self/mountinfo"));
  std::string line;
  while (std::getline(file, line)) {
    const std::pair<std::string, std::string> halves =
        absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    const std::vector<std::string> left = absl::StrSplit(halves.first, ' ');
    const std::vector<std::string> right = absl::StrSplit(halves.second, ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(right[2], ',');
    const bool memory =
        std::find(controllers.begin(), controllers.end(), "memory") != controllers.end();
    if (v2 ? right[0] != "cgroup2" : right[0] != "cgroup" || !memory) continue;
    mounts.push_back({WithoutEnd(left[3]), left[4]});
  }
  if (!mounts.empty()) return mounts;
  // Where they are usually.
  if (v2) return {{"", "/sys/fs/cgroup"}, {"", "/sys/fs/cgroup/unified"}};
  return {{"", "/sys/fs/cgroup/memory"}};
}

// The limits of `group` and of every one around it that the mount shows.
void LimitsUpwards(const std::string& folder, std::string group, absl::string_view file,
                   uint64_t& smallest) {
  for (;; group.resize(group.rfind('/'))) {
    Limit(absl::StrCat(folder, group, file), smallest);
    if (group.rfind('/') == std::string::npos) return;
  }
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
    const absl::string_view file = v2 ? "/memory.max" : "/memory.limit_in_bytes";
    const std::string group = WithoutEnd(fields[2]);
    for (const Mount& mount : MountsOf(root, v2)) {
      const std::string folder = absl::StrCat(root, mount.folder);
      // Without a namespace for groups a container sees the host's path, while the mount begins at
      // the container's own: what is below that is the same in both.
      absl::string_view inside = group;
      if (absl::ConsumePrefix(&inside, mount.group) && (inside.empty() || inside[0] == '/')) {
        LimitsUpwards(folder, std::string(inside), file, smallest);
      } else {
        LimitsUpwards(folder, group, file, smallest);
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
