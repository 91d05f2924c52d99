#include "server/access/file_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "testing.h"

namespace quantd::access {
namespace {

using std::chrono::milliseconds;

bool Soon(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

TEST(FileWatch, SeesEveryKindOfChange) {
  const Folder folder;
  std::filesystem::create_directory(folder.path("v1"));
  std::filesystem::create_directory(folder.path("v2"));
  folder.Put("v1/file", "a");
  folder.Put("v2/file", "a");
  std::filesystem::create_symlink("v1", folder.path("data"));
  std::filesystem::create_symlink("data/file", folder.path("file"));
  std::atomic<int> changed{0};
  std::atomic<int> other{0};
  FileWatch watch(milliseconds(10));
  watch.Add({folder.path("file")}, [&] { ++changed; });
  watch.Add({folder.Put("quiet", "q")}, [&] { ++other; });
  folder.Put("v1/file", "changed before it began");
  watch.Start();
  int expected = 0;
  const auto sees = [&] { return Soon([&, least = ++expected] { return changed >= least; }); };
  EXPECT_TRUE(sees());
  folder.Put("v1/file", "written over");
  EXPECT_TRUE(sees());
  folder.Put("new", "renamed");
  std::filesystem::rename(folder.path("new"), folder.path("v1/file"));
  EXPECT_TRUE(sees());
  std::filesystem::create_symlink("v2", folder.path("turned"));
  std::filesystem::rename(folder.path("turned"), folder.path("data"));
  EXPECT_TRUE(sees());
  std::filesystem::remove(folder.path("v2/file"));
  EXPECT_TRUE(sees());
  folder.Put("v2/file", "back");
  EXPECT_TRUE(sees());
  EXPECT_EQ(other, 0);
  watch.Reread();
  EXPECT_TRUE(Soon([&] { return other == 1; }));
}

}  // namespace
}  // namespace quantd::access
