// Finds the files with the limits of this process's control groups: those of a container, a pod or
// a service, and of their parent groups.
#ifndef QUANTD_CGROUP_H_
#define QUANTD_CGROUP_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace quantd {

// The folders of the process's group for `controller` ("cpu", "memory"), and of all parent groups
// that are mounted, for versions 1 and 2. Some may not exist, and a limit may be in any of them.
// `root`: the folder below which /proc and /sys are searched; "" except in tests.
std::vector<std::string> CgroupFolders(const std::string& root, absl::string_view controller);

}  // namespace quantd

#endif  // QUANTD_CGROUP_H_
