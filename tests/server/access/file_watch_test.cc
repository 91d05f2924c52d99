#include "server/access/file_watch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "testing.h"

namespace quantd::access {
namespace {

TEST(FileWatch, SeesEveryKindOfChange) {
  const Folder folder;
  std::filesystem::create_directory(folder.path("v1"));
  std::filesystem::create_directory(folder.path("v2"));
  folder.Put("v1/file", "a");
  folder.Put("v2/file", "a");
  std::filesystem::create_symlink("v1", folder.path("data"));
  std::filesystem::create_symlink("data/file", folder.path("file"));
  int changed = 0;
  int other = 0;
  FileWatch watch;
  watch.Add({folder.path("file")}, [&] { return ++changed > 0; });
  watch.Add({folder.Put("quiet", "q")}, [&] { return ++other > 0; });
  // Once, and not before the files have stopped changing.
  int expected = 0;
  const auto sees_change = [&] {
    watch.Look();
    if (changed != expected) return false;
    watch.Look();
    watch.Look();
    return changed == ++expected;
  };
  watch.Look();
  EXPECT_EQ(changed, 0);
  folder.Put("v1/file", "written over");
  EXPECT_TRUE(sees_change());
  folder.Put("new", "renamed");
  std::filesystem::rename(folder.path("new"), folder.path("v1/file"));
  EXPECT_TRUE(sees_change());
  std::filesystem::create_symlink("v2", folder.path("turned"));
  std::filesystem::rename(folder.path("turned"), folder.path("data"));
  EXPECT_TRUE(sees_change());
  std::filesystem::remove(folder.path("v2/file"));
  EXPECT_TRUE(sees_change());
  folder.Put("v2/file", "back");
  EXPECT_TRUE(sees_change());
  EXPECT_EQ(other, 0);
  watch.Reread();
  watch.Look();
  EXPECT_EQ(other, 1);
  EXPECT_EQ(changed, expected + 1);
  watch.Look();
  EXPECT_EQ(other, 1);
}

// For example because the table of descriptors was full at the one look that saw the change.
TEST(FileWatch, WhatCouldNotBeReadIsReadAgainLaterAndLater) {
  const Folder folder;
  FileWatch watch;
  std::vector<int> calls;
  int look = 0;
  bool can = false;
  watch.Add({folder.Put("file", "a")}, [&] {
    calls.push_back(look);
    return can;
  });
  folder.Put("file", "other");
  for (look = 0; look < 200; ++look) watch.Look();
  EXPECT_EQ(calls, (std::vector<int>{1, 3, 7, 15, 31, 63, 127, 191}));
  can = true;
  for (; look < 400; ++look) watch.Look();
  EXPECT_EQ(calls.size(), 9u);
  folder.Put("file", "a third one");
  for (; look < 410; ++look) watch.Look();
  EXPECT_EQ(calls.size(), 10u);
}

}  // namespace
}  // namespace quantd::access
