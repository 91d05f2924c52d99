// Names, and what OpenBeneath does with the files behind them.
#include "server/regions/name.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "regions_testing.h"
#include "server/regions/open_beneath.h"

namespace quantd::regions {
namespace {

TEST(NameTest, GoodNames) {
  for (const char* name : {"a", "quantd-123-abc", "A.b_c-9", "0", "-", "_", "a..b"}) {
    EXPECT_EQ(NameError(name), "") << name;
  }
  EXPECT_EQ(NameError(std::string(255, 'x')), "");
}

TEST(NameTest, NoNames) {
  for (const char* name : {"", ".", "..", ".hidden", "/", "/etc/passwd", "../x", "a/b", "a/../b",
                           "a b", "a\n", "\xc3\xa4", "%2e", "a\\b", "~", "$HOME", "*"}) {
    EXPECT_NE(NameError(name), "") << name;
  }
  EXPECT_NE(NameError(std::string("a\0b", 3)), "");
  EXPECT_NE(NameError(std::string("\0", 1)), "");
  EXPECT_THAT(NameError(std::string(256, 'x')), testing::HasSubstr("256"));
}

TEST(NameTest, EveryByteIsAllowedOrNot) {
  const std::string allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  for (int c = 0; c < 256; ++c) {
    const std::string name = {'x', static_cast<char>(c)};
    EXPECT_EQ(NameError(name).empty(), allowed.find(static_cast<char>(c)) != std::string::npos)
        << c;
  }
}

TEST(NameTest, LinksAreNotFollowed) {
  const Folder folder;
  folder.Make("file", 10);
  EXPECT_EQ(symlink("/etc/passwd", (folder / "out").c_str()), 0);
  EXPECT_EQ(symlink("file", (folder / "in").c_str()), 0);
  EXPECT_EQ(symlink("nowhere", (folder / "dangling").c_str()), 0);
  EXPECT_EQ(symlink("/proc/self/fd/0", (folder / "magic").c_str()), 0);
  for (const char* name : {"out", "in", "dangling", "magic"}) {
    EXPECT_FALSE(OpenBeneath(folder.descriptor(), name, O_RDONLY).is_open()) << name;
    EXPECT_EQ(errno, ELOOP) << name;
  }
  const UniqueFd file = OpenBeneath(folder.descriptor(), "file", O_RDWR);
  EXPECT_GE(file.get(), 0);
  EXPECT_EQ(fcntl(file.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(NameTest, PipesAndSocketsDoNotKeepAnybodyWaiting) {
  const Folder folder;
  EXPECT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  const UniqueFd pipe = OpenBeneath(folder.descriptor(), "pipe", O_RDONLY);
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, (folder / "socket").c_str(), sizeof(address.sun_path) - 1);
  const UniqueFd socket_file(socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(bind(socket_file.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_FALSE(OpenBeneath(folder.descriptor(), "socket", O_RDONLY).is_open());
  EXPECT_EQ(errno, ENXIO);
}

TEST(NameTest, WhatIsNotThere) {
  const Folder folder;
  EXPECT_FALSE(OpenBeneath(folder.descriptor(), "nothing", O_RDWR).is_open());
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace quantd::regions
