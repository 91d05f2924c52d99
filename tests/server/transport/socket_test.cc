// The options that a connection sets on its socket.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "server/fd/unique_fd.h"
#include "server/transport/connection.h"
#include "world.h"

namespace quantd::transport {
namespace {

std::string Algorithm(int fd) {
  std::array<char, 16> name{};
  socklen_t size = name.size();
  EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size), 0);
  return name.data();
}

// A connection's algorithm, with `before` as the system's choice; empty if it is not available.
std::string AlgorithmAfterOpen(const std::string& before) {
  World world;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM, 0));
  const UniqueFd client(socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(bind(listener.get(), any, size), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  EXPECT_EQ(getsockname(listener.get(), any, &size), 0);
  EXPECT_EQ(connect(client.get(), any, size), 0);
  UniqueFd server(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK));
  const auto length = static_cast<socklen_t>(before.size());
  if (setsockopt(server.get(), IPPROTO_TCP, TCP_CONGESTION, before.data(), length) != 0) return "";
  std::string after;
  world.Run([&] {
    const int fd = server.Release();
    const PeerTable::Outcome outcome = world.context().peers.Add(7, 0);
    world.set().Expect();
    Connection::Open(world.set(), fd, {{7, "test"}, outcome.account});
    after = Algorithm(fd);
  });
  return after;
}

TEST(Socket, IsNotPacedWithinOneMachine) {
  const std::string after = AlgorithmAfterOpen("bbr");
  if (after.empty()) GTEST_SKIP() << "the kernel has no BBR for this user";
  EXPECT_EQ(after, "reno");
}

TEST(Socket, OtherAlgorithmsStay) {
  const std::string after = AlgorithmAfterOpen("cubic");
  if (after.empty()) GTEST_SKIP() << "the kernel has no CUBIC for this user";
  EXPECT_EQ(after, "cubic");
}

}  // namespace
}  // namespace quantd::transport
