// Limits of cgroups, read from folders that look like those of containers.
#include "server/memory/container.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace quantd::memory {
namespace {

constexpr char kV2[] = "/sys/fs/cgroup";
constexpr char kV1[] = "/sys/fs/cgroup/memory";

// A root folder of its own, removed with the test.
class Root {
 public:
  Root() {
    std::string name = testing::TempDir() + "/container_test.XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Root() { std::filesystem::remove_all(path_); }

  void Write(const std::string& file, const std::string& text) const {
    const std::filesystem::path whole = path_ + file;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  // The groups that the process belongs to: /proc/self/cgroup.
  void Member(const std::string& text) const { Write("/proc/self/cgroup", text); }
  uint64_t Limit() const { return CgroupLimitBytes(path_); }

 private:
  std::string path_;
};

TEST(CgroupLimitTest, NoneWhereThereIsNothing) {
  const Root root;
  EXPECT_EQ(root.Limit(), 0U);
  root.Member("0::/\n");
  EXPECT_EQ(root.Limit(), 0U);
}

// A container sees its own group as the root.
TEST(CgroupLimitTest, Version2InAContainer) {
  const Root root;
  root.Member("0::/\n");
  root.Write(std::string(kV2) + "/memory.max", "536870912\n");
  EXPECT_EQ(root.Limit(), 536870912U);
}

TEST(CgroupLimitTest, Version2OfItsOwnGroup) {
  const Root root;
  root.Member("0::/kubepods.slice/pod1/quantd\n");
  root.Write(std::string(kV2) + "/kubepods.slice/pod1/quantd/memory.max", "1000000\n");
  root.Write(std::string(kV2) + "/kubepods.slice/pod1/memory.max", "2000000\n");
  root.Write(std::string(kV2) + "/kubepods.slice/memory.max", "max\n");
  // Limits of groups beside it or below it do not count.
  root.Write(std::string(kV2) + "/kubepods.slice/pod2/memory.max", "10\n");
  root.Write(std::string(kV2) + "/kubepods.slice/pod1/quantd/child/memory.max", "20\n");
  EXPECT_EQ(root.Limit(), 1000000U);
}

// A pod's limit applies to each of its containers.
TEST(CgroupLimitTest, Version2OfAGroupAroundIt) {
  for (const char* const group :
       {"/kubepods.slice/pod1", "/kubepods.slice", "", "/kubepods.slice/pod1/quantd"}) {
    const Root root;
    root.Member("0::/kubepods.slice/pod1/quantd\n");
    root.Write(std::string(kV2) + "/kubepods.slice/pod1/quantd/memory.max", "2000000\n");
    root.Write(std::string(kV2) + group + "/memory.max", "1000000\n");
    EXPECT_EQ(root.Limit(), 1000000U) << group;
  }
}

TEST(CgroupLimitTest, Version1) {
  const Root root;
  root.Member(
      "12:cpu,cpuacct:/docker/0123\n"
      "5:memory:/docker/0123\n"
      "1:name=systemd:/docker/0123\n");
  root.Write(std::string(kV1) + "/docker/0123/memory.limit_in_bytes", "400000000\n");
  root.Write("/sys/fs/cgroup/cpu,cpuacct/docker/0123/memory.limit_in_bytes", "1\n");
  EXPECT_EQ(root.Limit(), 400000000U);
  root.Write(std::string(kV1) + "/docker/memory.limit_in_bytes", "350000000\n");
  EXPECT_EQ(root.Limit(), 350000000U);
}

// Without a namespace for groups: the path is the host's, the mount begins at the container's
// group, and the process is in a group below that.
TEST(CgroupLimitTest, AGroupBelowTheContainersOwn) {
  for (const bool v2 : {true, false}) {
    const Root root;
    const std::string folder = v2 ? kV2 : kV1;
    const std::string file = v2 ? "/memory.max" : "/memory.limit_in_bytes";
    root.Member(v2 ? "0::/docker/0123/a/b\n" : "5:memory:/docker/0123/a/b\n");
    root.Write("/proc/self/mountinfo",
               "22 21 0:20 / /sys rw,nosuid - sysfs sysfs rw\n"
               "30 22 0:25 /docker/0123 " +
                   folder + " ro,nosuid shared:9 - " +
                   (v2 ? "cgroup2 cgroup rw" : "cgroup cgroup rw,memory") + "\n");
    root.Write(folder + file, "900000000\n");
    EXPECT_EQ(root.Limit(), 900000000U);
    root.Write(folder + "/a" + file, "800000000\n");
    EXPECT_EQ(root.Limit(), 800000000U);
    root.Write(folder + "/a/b" + file, "700000000\n");
    EXPECT_EQ(root.Limit(), 700000000U);
    root.Write(folder + "/a/b/c" + file, "1\n");
    EXPECT_EQ(root.Limit(), 700000000U);
  }
}

TEST(CgroupLimitTest, Version1SaysNoneByANumber) {
  const Root root;
  root.Member("5:memory:/docker/0123\n");
  root.Write(std::string(kV1) + "/docker/0123/memory.limit_in_bytes", "9223372036854771712\n");
  root.Write(std::string(kV1) + "/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(root.Limit(), 0U);
}

// Both versions at a time: then version 2 has no memory controller, or version 1 has none.
TEST(CgroupLimitTest, Hybrid) {
  const Root root;
  root.Member(
      "5:memory:/a\n"
      "0::/b\n");
  root.Write(std::string(kV1) + "/a/memory.limit_in_bytes", "5000000\n");
  EXPECT_EQ(root.Limit(), 5000000U);
  root.Write("/sys/fs/cgroup/unified/b/memory.max", "4000000\n");
  EXPECT_EQ(root.Limit(), 4000000U);
}

TEST(CgroupLimitTest, WhatIsNoNumberIsNone) {
  for (const char* const text : {"", "\n", "0\n", "lots\n", "-1\n", "99999999999999999999999\n"}) {
    const Root root;
    root.Member("0::/\n");
    root.Write(std::string(kV2) + "/memory.max", text);
    EXPECT_EQ(root.Limit(), 0U) << text;
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

}  // namespace
}  // namespace quantd::memory
