// Where the limits of this process's control groups are files: those of a container, a pod or a
// service, and of the groups around it.
#ifndef QUANTD_CGROUP_H_
#define QUANTD_CGROUP_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace quantd {

// Folders of the group that the process belongs to for `controller` ("cpu", "memory"), and of every
// group around it that is mounted, of version 1 and 2. Some of them may not exist, and a limit may
// be in any. `root`: "" outside of tests; the folder below which /proc and /sys are looked up.
std::vector<std::string> CgroupFolders(const std::string& root, absl::string_view controller);

}  // namespace quantd

#endif  // QUANTD_CGROUP_H_
