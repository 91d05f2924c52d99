// Regions of the C++ client: the properties of their files, and that these are removed.
#include "quantd/client/shared_region.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "quantd/client/tensor.h"

namespace quantd::client {
namespace {

class SharedRegionTest : public testing::Test {
 protected:
  SharedRegionTest() {
    char path[] = "/dev/shm/shared_region_test_XXXXXX";
    EXPECT_NE(mkdtemp(path), nullptr);
    folder_ = path;
    unsetenv("QUANTD_SHARED_MEMORY_DIR");
  }
  ~SharedRegionTest() override { std::filesystem::remove_all(folder_); }
  bool IsEmpty() const { return std::filesystem::is_empty(folder_); }

  std::string folder_;
};

TEST_F(SharedRegionTest, AFileThatIsAllThereAndLocked) {
  const auto region = SharedRegion::Create(10'000, folder_);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_THAT(region->name(), testing::MatchesRegex("quantd-[0-9]+-[0-9a-f]+"));
  const std::string path = folder_ + "/" + region->name();
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 10'000);
  EXPECT_GE(status.st_blocks * 512, 10'000);
  EXPECT_EQ(status.st_mode & 0777, 0660U);
  const int file = open(path.c_str(), O_RDWR);
  EXPECT_NE(flock(file, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(region->span().size(), 10'000);
  EXPECT_EQ(region->span()[9'999], 0);
  region->span()[5] = 7;
  char byte = 0;
  EXPECT_EQ(pread(file, &byte, 1, 5), 1);
  EXPECT_EQ(byte, 7);
  close(file);
}

TEST_F(SharedRegionTest, ItGoesWithItsOwner) {
  {
    auto first = SharedRegion::Create(1, folder_);
    ASSERT_TRUE(first.ok());
    std::optional<SharedRegion> second = *std::move(first);
    EXPECT_FALSE(IsEmpty());
    second->span()[0] = 1;
  }
  EXPECT_TRUE(IsEmpty());
}

}  // namespace
}  // namespace quantd::client
