// The whole transport on real sockets: a drain loses no connection.
#include "server/transport/transport.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "world.h"

namespace quantd::transport {
namespace {

int ConnectTo(const std::string& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&where), sizeof(where)), 0);
  return fd;
}

// More than one iteration accepts.
TEST(Transport, WhoWaitsWhenItStopsListeningIsTaken) {
  constexpr int kClients = 200;
  World world;
  const std::unique_ptr<loop::Loop> loops[] = {loop::NewLoop(), loop::NewLoop()};
  Transport transport(world.context(), {loops[0].get(), loops[1].get()});
  const std::string address = transport.Listen("127.0.0.1:0").value();
  std::vector<std::jthread> leaders;
  for (const auto& loop : loops) leaders.emplace_back([&loop] { loop->Lead(); });
  transport.Start();

  std::latch over(1);
  loop::Job pause([&] { over.wait(); });
  loops[0]->Post(pause);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Client>(ConnectTo(address)));
    clients.back()->Say(CallHead(1, "/t/Collect/a", true));
  }
  std::thread drain([&] {
    transport.StopListening();
    transport.GoAway();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  over.count_down();
  drain.join();
  EXPECT_EQ(world.context().counters.accepted, static_cast<uint64_t>(kClients));
  int answered = 0;
  for (const auto& client : clients) answered += client->Status(1) == 0 ? 1 : 0;
  EXPECT_EQ(answered, kClients);
  for (const auto& client : clients) client->Until([&] { return client->closed(); });
  clients.clear();
  EXPECT_TRUE(transport.WaitForConnections(loop::Clock::now() + std::chrono::seconds(10)));

  transport.Close();
  EXPECT_TRUE(world.Empty());
  for (const auto& loop : loops) {
    loop::RunOn(*loop, [] {});
    loop->Stop();
  }
}

}  // namespace
}  // namespace quantd::transport
