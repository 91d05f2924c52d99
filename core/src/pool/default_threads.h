// How many CPUs this process may use: what its affinity and its cgroup allow, not what the host
// has. More threads than that only take turns, and a CPU quota then stops all of them at once for
// the rest of its period.
#ifndef QUANTD_SRC_POOL_DEFAULT_THREADS_H_
#define QUANTD_SRC_POOL_DEFAULT_THREADS_H_

#include <string>

namespace quantd {

// CPUs in the affinity mask of this thread; at least 1.
int AffinityCpus();

// The CPUs that the cgroup's quota (v2 cpu.max, v1 cpu.cfs_quota_us) allows, rounded up; the
// minimum of the group and its parents; 0: no limit. `root`: as for CgroupFolders.
int QuotaCpus(const std::string& root);

}  // namespace quantd

#endif  // QUANTD_SRC_POOL_DEFAULT_THREADS_H_
