// Limits of cgroups, read from folders that look like those of containers.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/memory/shares.h"

namespace quantd::memory {
namespace container_test {

// Without a namespace for groups: the path is the host's, the mount begins at the container's
// group, and the process is in a group below that.
constexpr char kMount2[] = "30 22 0:25 /host /sys/fs/cgroup ro shared:9 - cgroup2 cgroup rw\n";
constexpr char kMount1[] = "30 22 0:25 /host /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
constexpr char kPod[] = "0::/slice/pod/quantd\n";
constexpr char kDocker[] = "12:cpu,cpuacct:/docker/0\n5:memory:/docker/0\n1:name=systemd:/docker/0";

struct Row {
  const char* groups;     // /proc/self/cgroup
  const char* mountinfo;  // /proc/self/mountinfo
  const char* files;      // PATH=TEXT, in /sys/fs/cgroup
  uint64_t limit;
};

TEST(CgroupLimitBytesTest, IsTheSmallestOfTheGroupsAroundTheProcess) {
  const Row rows[] = {
      {"", "", "", 0},
      {"0::/\n", "", "", 0},
      // A container sees its own group as the root.
      {"0::/\n", "", "memory.max=900", 900},
      // Groups beside its own and below it do not count.
      {kPod, "", "slice/pod/quantd/memory.max=8 slice/pod/memory.max=9 slice/memory.max=max", 8},
      {kPod, "", "slice/pod/quantd/memory.max=8 slice/pod/quantd/a/memory.max=1", 8},
      {kPod, "", "slice/pod/quantd/memory.max=8 slice/other/memory.max=1", 8},
      // A pod's limit applies to each of its containers.
      {kPod, "", "slice/pod/quantd/memory.max=8 slice/pod/memory.max=7", 7},
      {kPod, "", "slice/pod/quantd/memory.max=8 slice/memory.max=7", 7},
      {kPod, "", "slice/pod/quantd/memory.max=8 memory.max=7", 7},
      // Version 1, which says none by a number.
      {kDocker, "", "memory/docker/0/memory.limit_in_bytes=400", 400},
      {kDocker, "", "cpu,cpuacct/docker/0/memory.limit_in_bytes=1", 0},
      {kDocker, "",
       "memory/docker/0/memory.limit_in_bytes=400 memory/docker/memory.limit_in_bytes=350", 350},
      {kDocker, "", "memory/docker/0/memory.limit_in_bytes=9223372036854771712", 0},
      {"0::/host/a/b\n", kMount2, "memory.max=9", 9},
      {"0::/host/a/b\n", kMount2, "memory.max=9 a/memory.max=8", 8},
      {"0::/host/a/b\n", kMount2, "memory.max=9 a/b/memory.max=7 a/b/c/memory.max=1", 7},
      {"5:memory:/host/a/b\n", kMount1,
       "memory/memory.limit_in_bytes=9 memory/a/memory.limit_in_bytes=8", 8},
      // Both versions at a time: then version 2 has no memory controller, or version 1 has none.
      {"5:memory:/a\n0::/b\n", "", "memory/a/memory.limit_in_bytes=5", 5},
      {"5:memory:/a\n0::/b\n", "", "memory/a/memory.limit_in_bytes=5 unified/b/memory.max=4", 4},
      // What is no number is no limit.
      {"0::/\n", "", "memory.max=", 0},
      {"0::/\n", "", "memory.max=0", 0},
      {"0::/\n", "", "memory.max=lots", 0},
      {"0::/\n", "", "memory.max=-1", 0},
      {"0::/\n", "", "memory.max=99999999999999999999999", 0},
  };
  for (const Row& row : rows) {
    std::string root = testing::TempDir() + "/container_test.XXXXXX";
    ASSERT_NE(mkdtemp(root.data()), nullptr);
    const auto write = [&root](const std::string& file, const std::string& text) {
      const std::filesystem::path path = root + file;
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path) << text;
    };
    write("/proc/self/cgroup", row.groups);
    write("/proc/self/mountinfo", row.mountinfo);
    for (const absl::string_view file : absl::StrSplit(row.files, ' ', absl::SkipEmpty())) {
      const std::vector<std::string> parts = absl::StrSplit(file, '=');
      write(absl::StrCat("/sys/fs/cgroup/", parts[0]), parts[1] + "\n");
    }
    EXPECT_EQ(CgroupLimitBytes(root), row.limit) << row.groups << row.files;
    std::filesystem::remove_all(root);
  }
}

TEST(LimitBytesTest, IsNoMoreThanTheMachineHas) {
  const uint64_t machine =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t container = CgroupLimitBytes("");
  EXPECT_GT(LimitBytes(), 0U);
  EXPECT_LE(LimitBytes(), machine);
  EXPECT_EQ(LimitBytes(), container == 0 ? machine / 2 : std::min(container, machine));
}

}  // namespace container_test
}  // namespace quantd::memory
