// Files of dead clients are removed, and no others.
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <chrono>

#include "regions_testing.h"
#include "server/regions/directory.h"

namespace quantd::regions {
namespace {

constexpr std::chrono::nanoseconds kAnyAge{0};

TEST(RemoveLeftoversTest, OnlyOldFilesOfThePrefixThatNobodyHolds) {
  const Folder folder;
  const char* const kept[] = {"mine", "Quantd-1", ".quantd-1", "xquantd-1", "quantd-bad name"};
  for (const char* name : kept) folder.Make(name, 10);
  folder.Make("quantd-1-left", 10);
  folder.Make("quantd-", 10);
  std::filesystem::create_directory(folder / "quantd-folder");
  EXPECT_EQ(symlink("mine", (folder / "quantd-link").c_str()), 0);
  EXPECT_EQ(mkfifo((folder / "quantd-pipe").c_str(), 0600), 0);
  const int held = folder.Create("quantd-1-held", 10);
  EXPECT_EQ(flock(held, LOCK_EX), 0);
  const int shared = folder.Create("quantd-1-shared", 10);
  EXPECT_EQ(flock(shared, LOCK_SH), 0);
  EXPECT_EQ(RemoveLeftovers(folder.descriptor(), std::chrono::hours(1)), 0);  // all are too new
  EXPECT_EQ(RemoveLeftovers(folder.descriptor(), kAnyAge), 2);
  EXPECT_FALSE(folder.Has("quantd-1-left"));
  EXPECT_FALSE(folder.Has("quantd-"));
  for (const char* name : kept) EXPECT_TRUE(folder.Has(name)) << name;
  for (const char* name : {"quantd-folder", "quantd-link", "quantd-pipe"}) {
    EXPECT_TRUE(folder.Has(name)) << name;
  }
  close(held);
  close(shared);
  EXPECT_EQ(RemoveLeftovers(folder.descriptor(), kAnyAge), 2);
  EXPECT_TRUE(folder.Has("mine"));
}

TEST(RemoveLeftoversTest, ThoseOfAKilledClient) {
  const Folder folder;
  int locked[2];
  ASSERT_EQ(pipe(locked), 0);
  const pid_t client = fork();
  if (client == 0) {
    const int file = open((folder / "quantd-2-child").c_str(), O_RDWR | O_CREAT, 0600);
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) != 0) _exit(1);
    if (write(locked[1], "x", 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char byte = 0;
  close(locked[1]);
  EXPECT_EQ(read(locked[0], &byte, 1), 1);
  close(locked[0]);
  EXPECT_EQ(RemoveLeftovers(folder.descriptor(), kAnyAge), 0);
  kill(client, SIGKILL);
  EXPECT_EQ(waitpid(client, nullptr, 0), client);
  EXPECT_EQ(RemoveLeftovers(folder.descriptor(), kAnyAge), 1);
  EXPECT_FALSE(folder.Has("quantd-2-child"));
}

}  // namespace
}  // namespace quantd::regions
