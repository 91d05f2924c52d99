#include "quantd/cgroup.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace quantd {
namespace {

// The folder of a hierarchy of groups.
struct CgroupMount {
  std::string group;   // the group at the mount's root; "": all groups
  std::string folder;  // the mount point
};

bool Names(absl::string_view list, absl::string_view controller) {
  const std::vector<absl::string_view> names = absl::StrSplit(list, ',');
  return std::find(names.begin(), names.end(), controller) != names.end();
}

std::string WithoutEnd(absl::string_view path) {
  return std::string(path == "/" ? absl::string_view() : path);
}

// From /proc/self/mountinfo: "31 23 0:26 GROUP FOLDER OPTIONS - TYPE SOURCE SUPER_OPTIONS".
// `controllers`: those of a hierarchy of version 1; "" for version 2.
std::vector<CgroupMount> MountsOf(const std::string& root, const std::string& controllers,
                                  absl::string_view controller) {
  const bool v2 = controllers.empty();
  std::vector<CgroupMount> mounts;
  std::ifstream file(absl::StrCat(root, "/proc/self/mountinfo"));
  std::string line;
  while (std::getline(file, line)) {
    const std::pair<std::string, std::string> halves =
        absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    const std::vector<std::string> left = absl::StrSplit(halves.first, ' ');
    const std::vector<std::string> right = absl::StrSplit(halves.second, ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    if (v2 ? right[0] != "cgroup2" : right[0] != "cgroup" || !Names(right[2], controller)) continue;
    mounts.push_back({WithoutEnd(left[3]), left[4]});
  }
  if (!mounts.empty()) return mounts;
  // The usual place.
  constexpr absl::string_view kUsual = "/sys/fs/cgroup";
  if (v2) return {{"", std::string(kUsual)}, {"", absl::StrCat(kUsual, "/unified")}};
  return {{"", absl::StrCat(kUsual, "/", controller)},
          {"", absl::StrCat(kUsual, "/", controllers)}};
}

}  // namespace

std::vector<std::string> CgroupFolders(const std::string& root, absl::string_view controller) {
  std::vector<std::string> folders;
  std::ifstream memberships(absl::StrCat(root, "/proc/self/cgroup"));
  std::string line;
  while (std::getline(memberships, line)) {
    // "0::/path" (v2) or "4:cpu,cpuacct:/path" (v1).
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (!fields[1].empty() && !Names(fields[1], controller)) continue;
    for (const CgroupMount& mount : MountsOf(root, fields[1], controller)) {
      const std::string group = WithoutEnd(fields[2]);
      // Without a cgroup namespace, a container sees the host's path, while the mount begins at the
      // container's own group: what is below that is the same in both.
      absl::string_view inside = group;
      const bool is_inside =
          absl::ConsumePrefix(&inside, mount.group) && (inside.empty() || inside[0] == '/');
      for (std::string path(is_inside ? inside : group);; path.resize(path.rfind('/'))) {
        folders.push_back(absl::StrCat(root, mount.folder, path));
        if (path.rfind('/') == std::string::npos) break;
      }
    }
  }
  return folders;
}

}  // namespace quantd
