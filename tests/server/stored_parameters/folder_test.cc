#include "server/stored_parameters/folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sets_testing.h"

namespace quantd::stored_parameters {
namespace {

Reference Named(const std::string& name, const std::string& bytes) { return {name, Sha256(bytes)}; }

TEST(Folder, WhatIsWrittenIsRead) {
  const TemporaryFolder at;
  const absl::StatusOr<Folder> folder = Folder::Open(at.path());
  ASSERT_TRUE(folder.ok()) << folder.status();
  const std::string bytes(100'000, 'b');
  const Reference reference = Named("a", bytes);
  EXPECT_TRUE(absl::IsNotFound(folder->Read(reference).status()));
  EXPECT_EQ(folder->Size(reference), 0U);
  ASSERT_TRUE(folder->Write(reference, bytes).ok());
  ASSERT_TRUE(folder->Write(reference, bytes).ok());
  EXPECT_EQ(*folder->Read(reference), bytes);
  EXPECT_EQ(folder->Size(reference), bytes.size());
  EXPECT_EQ(at.files(), 1U);
  struct stat found;
  ASSERT_EQ(stat((at / reference.FileName()).c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0444, 0444U);  // replicas may run as other users
}

TEST(Folder, OnlyFoldersAreOpened) {
  const TemporaryFolder at;
  at.Write("file", "");
  for (const std::string& path : {at / "file", at / "nothing", std::string()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Folder::Open(path).status())) << path;
  }
}

TEST(Folder, WhatIsNotWhatItsNameSays) {
  const TemporaryFolder at;
  const Folder folder = *Folder::Open(at.path());
  const std::string bytes = "bytes";
  const Reference reference = Named("a", bytes);
  for (const std::string& wrong : {std::string(), std::string("byte"), std::string("bytes "),
                                   std::string("cytes"), std::string(kMaxSetBytes + 1, 'x')}) {
    at.Write(reference.FileName(), wrong);
    EXPECT_TRUE(absl::IsNotFound(folder.Read(reference).status()));
    ASSERT_TRUE(folder.Write(reference, bytes).ok());
    EXPECT_EQ(*folder.Read(reference), bytes);
  }
}

TEST(Folder, WhatIsNoFile) {
  const TemporaryFolder at;
  const Folder folder = *Folder::Open(at.path());
  const Reference pipe = Named("pipe", "pipe");
  ASSERT_EQ(mkfifo((at / pipe.FileName()).c_str(), 0600), 0);
  const Reference directory = Named("directory", "directory");
  std::filesystem::create_directory(at / directory.FileName());
  const Reference device = Named("device", "device");
  std::filesystem::create_symlink("/dev/zero", at / device.FileName());
  const Reference loop = Named("loop", "loop");
  std::filesystem::create_symlink(loop.FileName(), at / loop.FileName());
  for (const Reference& each : {pipe, directory, device, loop}) {
    EXPECT_TRUE(absl::IsNotFound(folder.Read(each).status())) << each.Text();
  }
  // A folder with a set's name is left alone.
  EXPECT_FALSE(folder.Write(directory, "directory").ok());
  EXPECT_TRUE(folder.Write(pipe, "pipe").ok());
  EXPECT_EQ(*folder.Read(pipe), "pipe");
}

// As kubelet makes them: NAME -> ..data/NAME, ..data -> ..2026, which is replaced as a whole.
TEST(Folder, LinksOfAConfigMap) {
  const TemporaryFolder at;
  const Folder folder = *Folder::Open(at.path());
  const Reference reference = Named("a", "bytes");
  std::filesystem::create_directory(at / "..2026");
  at.Write("..2026/" + reference.FileName(), "bytes");
  std::filesystem::create_directory_symlink("..2026", at / "..data");
  std::filesystem::create_symlink("..data/" + reference.FileName(), at / reference.FileName());
  EXPECT_EQ(*folder.Read(reference), "bytes");
  EXPECT_EQ(folder.List("", 10)->size(), 1U);
  EXPECT_EQ(folder.Named("a", 2)->size(), 1U);
}

TEST(Folder, ListsTheFirstOnes) {
  const TemporaryFolder at;
  const Folder folder = *Folder::Open(at.path());
  std::vector<std::string> all;
  for (int i = 0; i < 300; ++i) {
    const Reference reference = Named(absl::StrCat("n", i % 100), absl::StrCat(i));
    at.Write(reference.FileName(), "");
    all.push_back(reference.Text());
  }
  at.Write("README", "");
  at.Write("n5", "");
  std::sort(all.begin(), all.end());
  EXPECT_EQ(*folder.List("", 1000), all);
  EXPECT_EQ(*folder.List("", 7), std::vector<std::string>(all.begin(), all.begin() + 7));
  EXPECT_EQ(folder.List("n5@", 1000)->size(), 3U);
  EXPECT_EQ(folder.List("n5@sha256:", 1000)->size(), 3U);
  EXPECT_EQ(folder.List("nobody", 1000)->size(), 0U);
  EXPECT_EQ(folder.Named("n5", 10)->size(), 3U);
  EXPECT_EQ(folder.Named("n5", 2)->size(), 2U);
  EXPECT_EQ(folder.Named("n", 2)->size(), 0U);
}

TEST(Folder, LeftoversGoWhenTheyAreOld) {
  const TemporaryFolder at;
  for (const char* name : {".old.quantd-new", ".new.quantd-new", ".old"}) at.Write(name, "x");
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(2);
  for (const char* name : {".old.quantd-new", ".old"}) {
    std::filesystem::last_write_time(at / name, old);
  }
  ASSERT_TRUE(Folder::Open(at.path()).ok());
  EXPECT_FALSE(std::filesystem::exists(at / ".old.quantd-new"));
  EXPECT_TRUE(std::filesystem::exists(at / ".new.quantd-new"));
  EXPECT_TRUE(std::filesystem::exists(at / ".old"));
}

TEST(Folder, ManyWritersOfOneSet) {
  const TemporaryFolder at;
  const Folder folder = *Folder::Open(at.path());
  for (int round = 0; round < 20; ++round) {
    const std::string bytes(50'000, static_cast<char>('a' + round));
    const Reference reference = Named("a", bytes);
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        const absl::Status status = folder.Write(reference, bytes);
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_EQ(*folder.Read(reference), bytes);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(at.files(), 20U);
}

// The error does not mean that the set is missing: clients try again.
TEST(Folder, WhatMayPassIsUnavailable) {
  const TemporaryFolder at;
  const Folder folder = *Folder::Open(at.path());
  const std::string bytes(100, 'b');
  const Reference reference = Named("a", bytes);
  ASSERT_TRUE(folder.Write(reference, bytes).ok());
  EXPECT_TRUE(absl::IsUnavailable(folder.Read(reference, 99).status()));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status status = folder.Read(reference).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(*folder.Read(reference, 100), bytes);
}

}  // namespace
}  // namespace quantd::stored_parameters
