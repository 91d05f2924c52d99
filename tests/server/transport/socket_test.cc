// What a connection makes of its socket: its options, and how it lets uploads in.
#include <arpa/inet.h>
#include <fcntl.h>
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

sockaddr_in AddressOf(const char* ip) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, ip, &address.sin_addr), 1);
  return address;
}

// A TCP connection from `ip` to a world on 127.0.0.1.
struct Tcp {
  // `before`: the system's algorithm; "": as it is.
  Tcp(World& world, const std::string& before, const char* ip = "127.0.0.1") {
    sockaddr_in from = AddressOf(ip), to = AddressOf("127.0.0.1");
    socklen_t size = sizeof(to);
    auto* const any = reinterpret_cast<sockaddr*>(&to);
    const UniqueFd listener(socket(AF_INET, SOCK_STREAM, 0));
    UniqueFd near(socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(bind(listener.get(), any, size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), any, &size), 0);
    EXPECT_EQ(bind(near.get(), reinterpret_cast<sockaddr*>(&from), sizeof(from)), 0);
    EXPECT_EQ(connect(near.get(), any, size), 0);
    UniqueFd server(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK));
    const auto length = static_cast<socklen_t>(before.size());
    if (!before.empty() &&
        setsockopt(server.get(), IPPROTO_TCP, TCP_CONGESTION, before.data(), length) != 0) {
      return;
    }
    world.Run([&] {
      const int fd = server.Release();
      const PeerTable::Outcome outcome = world.context().peers.Add(7, 0);
      world.set().Expect();
      Connection::Open(world.set(), fd, {{7, "test"}, outcome.account});
      after = Algorithm(fd);
    });
    EXPECT_EQ(fcntl(near.get(), F_SETFL, O_NONBLOCK), 0);
    client = near.Release();
  }

  std::string after;  // the connection's algorithm; empty if `before` is not available
  int client = -1;    // to be closed by a Client
};

World::Options WithLargeWindows() {
  World::Options options;
  options.window = admission::Receiving::kStep;
  return options;
}

// Whether a call's first message of 1 MiB is let in at once.
bool LetsInAtOnce(Client& client) {
  client.Say(CallHead(1, "/t/Collect/a"));
  EXPECT_TRUE(client.SayFrames(1, Prefixed(Pattern(1, 1 << 20)), 16'384, true));
  EXPECT_EQ(client.Status(1), 0);
  return client.stream(1).granted == 0;
}

TEST(Socket, IsNotPacedWithinOneMachine) {
  World world(WithLargeWindows());
  const Tcp tcp(world, "bbr");
  if (tcp.after.empty()) GTEST_SKIP() << "the kernel has no BBR for this user";
  EXPECT_EQ(tcp.after, "reno");
  Client client(tcp.client);
  EXPECT_FALSE(LetsInAtOnce(client)) << "the client's own BBR would pace it";
}

TEST(Socket, OtherAlgorithmsStay) {
  World world(WithLargeWindows());
  const Tcp tcp(world, "cubic");
  if (tcp.after.empty()) GTEST_SKIP() << "the kernel has no CUBIC for this user";
  EXPECT_EQ(tcp.after, "cubic");
  Client client(tcp.client);
  EXPECT_TRUE(LetsInAtOnce(client));
}

// Uploads wait for older ones within a machine only: see uploads_test.cc.
TEST(Socket, UploadsFromElsewhereDoNotWaitForEachOther) {
  World world;
  Client client(Tcp(world, "", "127.0.0.2").client);
  client.Say(CallHead(1, "/t/Collect/a") + CallHead(3, "/t/Collect/b"));
  const std::string bytes = Prefixed(Pattern(1, 2 << 20));
  for (const int32_t id : {1, 3}) {
    ASSERT_TRUE(client.SayFrames(id, bytes.substr(0, 1'000), 1'000, false));
  }
  ASSERT_TRUE(client.Heard());
  EXPECT_GT(client.stream(1).granted, 0);
  EXPECT_GT(client.stream(3).granted, 0);
  for (const int32_t id : {1, 3}) {
    EXPECT_TRUE(client.SayFrames(id, bytes.substr(1'000), 16'384, true));
    EXPECT_EQ(client.Status(id), 0);
  }
}

}  // namespace
}  // namespace quantd::transport
