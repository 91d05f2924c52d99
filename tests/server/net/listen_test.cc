// Listening sockets: which can be opened, which cannot, and why not, in one line.
#include "server/net/listen.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../http/peer.h"

namespace quantd::net {
namespace {

using testing::HasSubstr;
using testing::Not;

class Folder {
 public:
  Folder() : path_(testing::TempDir() + "quantd-net-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~Folder() { EXPECT_EQ(rmdir(path_.c_str()), 0) << "something was left in " << path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

bool Exists(const std::string& path) {
  struct stat info{};
  return lstat(path.c_str(), &info) == 0;
}

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::memcpy(where.sun_path, path.data(), path.size());
  return where;
}

// A socket of any type, bound to this path, which listens if its type can.
int BindUnix(const std::string& path, int type) {
  const int fd = socket(AF_UNIX, type, 0);
  const sockaddr_un where = UnixAddress(path);
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof(where)), 0);
  if (type != SOCK_DGRAM) {
    EXPECT_EQ(listen(fd, 4), 0);
  }
  return fd;
}

bool ConnectsUnix(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un where = UnixAddress(path);
  const bool ok = connect(fd, reinterpret_cast<const sockaddr*>(&where), sizeof(where)) == 0;
  close(fd);
  return ok;
}

bool Connects(const std::string& host, int port) {
  return http::Peer(host + ":" + std::to_string(port)).connected();
}

int PortOf(const std::string& address) {
  return std::atoi(address.substr(address.rfind(':') + 1).c_str());
}

bool HasIpv6() {
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 where{};
  where.sin6_family = AF_INET6;
  where.sin6_addr = in6addr_loopback;
  const bool has =
      fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof(where)) == 0;
  if (fd >= 0) close(fd);
  return has;
}

TEST(ListenTcp, PicksAPortAndSaysWhich) {
  absl::StatusOr<Listening> listening = Listen("127.0.0.1:0", "--listen");
  ASSERT_TRUE(listening.ok()) << listening.status();
  EXPECT_EQ(listening->address.rfind("127.0.0.1:", 0), 0U);
  ASSERT_EQ(listening->listeners.size(), 1U);
  EXPECT_NE(fcntl(listening->listeners[0].fd(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(fcntl(listening->listeners[0].fd(), F_GETFD) & FD_CLOEXEC, 0);
  const int port = PortOf(listening->address);
  EXPECT_TRUE(Connects("127.0.0.1", port));
  const absl::StatusOr<Listening> again = Listen(listening->address, "--listen");
  EXPECT_EQ(again.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(again.status().message()), HasSubstr("in use (--listen)"));
  listening->listeners.clear();
  EXPECT_FALSE(Connects("127.0.0.1", port));
  // Earlier connections do not keep the port.
  EXPECT_TRUE(Listen("127.0.0.1:" + std::to_string(port), "--listen").ok());
}

TEST(ListenTcp, AnyMeansBothFamilies) {
  for (const char* address : {"0.0.0.0:0", "[::]:0"}) {
    const absl::StatusOr<Listening> listening = Listen(address, "--listen");
    ASSERT_TRUE(listening.ok()) << listening.status();
    EXPECT_TRUE(Connects("127.0.0.1", PortOf(listening->address)));
    if (HasIpv6()) {
      EXPECT_TRUE(Connects("[::1]", PortOf(listening->address)));
    }
    EXPECT_FALSE(Listen("127.0.0.1:" + std::to_string(PortOf(listening->address)), "x").ok());
  }
}

// From now on, this thread can make no IPv6 socket: as on a kernel without IPv6.
bool TakeIpv6Away() {
  std::array<sock_filter, 6> filter = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program = {filter.size(), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(ListenTcp, WithoutIpv6AnyMeansIpv4AndSaysSo) {
  bool filtered = false;
  absl::StatusOr<Listening> both, asked, one;
  std::thread([&] {
    filtered = TakeIpv6Away();
    both = Listen("[::]:0", "--listen");
    asked = Listen("0.0.0.0:0", "--listen");
    one = Listen("[::1]:0", "--listen");
  }).join();
  if (!filtered) GTEST_SKIP() << "no seccomp here";
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->address.rfind("0.0.0.0:", 0), 0U) << both->address;
  EXPECT_EQ(both->note,
            "this machine has no IPv6: on " + both->address + " instead of [::]:0 (--listen)");
  EXPECT_TRUE(Connects("127.0.0.1", PortOf(both->address)));
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(asked->note, "");  // nothing was changed
  EXPECT_TRUE(Connects("127.0.0.1", PortOf(asked->address)));
  // A single IPv6 address has no substitute.
  EXPECT_EQ(one.status().code(), absl::StatusCode::kUnavailable);
}

TEST(Listen, SaysInOneLineWhatIsWrong) {
  for (const char* address :
       {"", ":", ":1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:-1", "127.0.0.1:65536",
        "127.0.0.1:99999999999999999999", "no.such.host.invalid:1", "192.0.2.1:1", "[]:1", "[::1",
        "unix:", "unix://", "unix:/no/such/folder/socket", "unix:/"}) {
    const absl::StatusOr<Listening> listening = Listen(address, "--listen");
    ASSERT_FALSE(listening.ok()) << address;
    const std::string message(listening.status().message());
    EXPECT_THAT(message, HasSubstr("--listen"));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  }
}

TEST(ListenUnix, TheFileComesAndGoes) {
  const Folder folder;
  const std::string path = folder / "socket";
  for (const std::string& address : {"unix:" + path, "unix://" + path}) {
    {
      absl::StatusOr<Listening> listening = Listen(address, "--listen");
      ASSERT_TRUE(listening.ok()) << listening.status();
      EXPECT_EQ(listening->address, address);
      EXPECT_TRUE(ConnectsUnix(path));
      const absl::StatusOr<Listening> second = Listen(address, "--listen");
      EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
      EXPECT_THAT(std::string(second.status().message()), HasSubstr("another server"));
      EXPECT_TRUE(ConnectsUnix(path));
      const Listener moved = std::move(listening->listeners[0]);
      listening->listeners.clear();
      EXPECT_TRUE(ConnectsUnix(path));
    }
    EXPECT_FALSE(Exists(path));
  }
}

TEST(ListenUnix, TakesTheDeadOnesPlace) {
  const Folder folder;
  const std::string path = folder / "socket";
  close(BindUnix(path, SOCK_STREAM));
  ASSERT_TRUE(Exists(path));
  const absl::StatusOr<Listening> listening = Listen("unix:" + path, "--listen");
  ASSERT_TRUE(listening.ok()) << listening.status();
  EXPECT_TRUE(ConnectsUnix(path));
}

// From no socket of any type, however busy it is.
TEST(ListenUnix, StealsFromNobody) {
  const Folder folder;
  const std::string path = folder / "socket";
  const auto refused = [&path](const char* what) {
    EXPECT_FALSE(Listen("unix:" + path, "--listen").ok()) << what;
    EXPECT_TRUE(Exists(path)) << what;
    unlink(path.c_str());
  };
  for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
    const int fd = BindUnix(path, type);
    refused("a socket");
    close(fd);
  }
  const int busy = BindUnix(path, SOCK_STREAM);
  const sockaddr_un where = UnixAddress(path);
  std::vector<int> waiting;
  do {
    waiting.push_back(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
  } while (connect(waiting.back(), reinterpret_cast<const sockaddr*>(&where), sizeof(where)) == 0);
  refused("a socket whose queue is full");
  for (const int fd : waiting) close(fd);
  close(busy);
  std::ofstream(path) << "a file";
  refused("a file");
  EXPECT_EQ(symlink("nowhere", path.c_str()), 0);
  refused("a link");
}

TEST(ListenUnix, OfManyAtATimeOneWins) {
  const Folder folder;
  const std::string address = "unix:" + (folder / "socket");
  for (int round = 0; round < 20; ++round) {
    std::array<std::unique_ptr<absl::StatusOr<Listening>>, 8> all;
    std::vector<std::thread> threads;
    for (auto& one : all) {
      threads.emplace_back(
          [&] { one = std::make_unique<absl::StatusOr<Listening>>(Listen(address, "--listen")); });
    }
    for (std::thread& thread : threads) thread.join();
    int won = 0;
    for (const auto& one : all) won += one->ok() ? 1 : 0;
    EXPECT_EQ(won, 1);
  }
}

}  // namespace
}  // namespace quantd::net
