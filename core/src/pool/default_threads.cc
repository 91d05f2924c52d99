#include "pool/default_threads.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "quantd/cgroup.h"

namespace quantd {
namespace {

// The first line of a small file; "" if it can't be read.
std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// CPUs, rounded up; 0 if either is not a positive number ("max" and -1 mean unlimited).
int Cpus(std::string_view quota, std::string_view period) {
  int64_t quota_us = 0;
  int64_t period_us = 0;
  if (!absl::SimpleAtoi(absl::string_view(quota.data(), quota.size()), &quota_us) ||
      !absl::SimpleAtoi(absl::string_view(period.data(), period.size()), &period_us) ||
      quota_us <= 0 || period_us <= 0) {
    return 0;
  }
  const int64_t cpus = quota_us / period_us + (quota_us % period_us != 0);
  return static_cast<int>(std::min<int64_t>(cpus, 1 << 20));
}

int CpusOfDirectory(const std::string& directory) {
  const std::vector<std::string> max =
      absl::StrSplit(FirstLine(absl::StrCat(directory, "/cpu.max")), ' ', absl::SkipEmpty());
  if (max.size() == 2) return Cpus(max[0], max[1]);
  return Cpus(FirstLine(absl::StrCat(directory, "/cpu.cfs_quota_us")),
              FirstLine(absl::StrCat(directory, "/cpu.cfs_period_us")));
}

}  // namespace

int AffinityCpus() {
  // The kernel refuses a mask that is smaller than its own, so grow until it fits.
  for (size_t sets = 1; sets <= 1024; sets *= 4) {
    std::vector<cpu_set_t> mask(sets);
    const size_t bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) return CPU_COUNT_S(bytes, mask.data());
    if (errno != EINVAL) break;
  }
  return 1;
}

int QuotaCpus(const std::string& root) {
  int smallest = 0;
  for (const std::string& folder : CgroupFolders(root, "cpu")) {
    const int cpus = CpusOfDirectory(folder);
    if (cpus > 0 && (smallest == 0 || cpus < smallest)) smallest = cpus;
  }
  return smallest;
}

}  // namespace quantd
