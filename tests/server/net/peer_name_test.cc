#include "server/net/peer_name.h"

#include <gtest/gtest.h>
#include <netdb.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "server/net/unique_fd.h"

namespace quantd::net {
namespace {

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

int ConnectTo(const std::string& path) {
  const sockaddr_un address = AddressOf(path);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

// How a process of another PID namespace, as a server in a container, names two connections of one
// client and one of another: 0 if correctly.
int JudgePeers(int listener) {
  Peer peers[3];
  for (Peer& peer : peers) peer = PeerOf(accept(listener, nullptr, nullptr));
  if (peers[0].name == "unix:pid:0") return 77;  // Linux before 6.9
  if (peers[0].name.rfind("unix:pid:0,pidfd:", 0) != 0) return 1;
  if (peers[0].id != peers[1].id || peers[0].name != peers[1].name) return 2;
  return peers[0].id == peers[2].id ? 3 : 0;
}

TEST(PeerName, ProcessesOfAnotherNamespaceArePeersOfTheirOwn) {
  const std::string path = testing::TempDir() + "/peer_" + std::to_string(getpid());
  const sockaddr_un address = AddressOf(path);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener, 3), 0);
  const int first = ConnectTo(path);
  const int second = ConnectTo(path);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t another = fork();
  if (another == 0) {
    close(ready[0]);
    ConnectTo(path);
    char byte = 0;
    if (write(ready[1], &byte, 1) == 1) pause();
    _exit(0);
  }
  close(ready[1]);
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const pid_t server = fork();
  if (server == 0) {
    if (unshare(CLONE_NEWPID) != 0) _exit(78);
    const pid_t inner = fork();
    if (inner == 0) _exit(JudgePeers(listener));
    int status = 0;
    waitpid(inner, &status, 0);
    _exit(inner > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 99);
  }
  int status = 0;
  ASSERT_EQ(waitpid(server, &status, 0), server);
  kill(another, SIGKILL);
  waitpid(another, nullptr, 0);
  for (const int fd : {first, second, listener, ready[0]}) close(fd);
  unlink(path.c_str());
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "the kernel tells no hidden processes apart";
  if (WEXITSTATUS(status) == 78) GTEST_SKIP() << "no right to make a namespace";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(PeerName, OfALocalProcess) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  EXPECT_EQ(PeerOf(pair[0]).name, "unix:pid:" + std::to_string(getpid()));
  EXPECT_EQ(PeerOf(pair[0]).id, PeerOf(pair[1]).id);
  close(pair[0]);
  close(pair[1]);
}

}  // namespace
}  // namespace quantd::net
