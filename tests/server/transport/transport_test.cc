// The whole transport on real sockets: which connections are accepted, and that a drain loses none.
#include "server/transport/transport.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../loop/loop_testing.h"
#include "client.h"
#include "server/transport/server_call.h"

namespace quantd::transport {
namespace {

// Answers everything with OK.
class Ok final : public CallHandler {
 public:
  int Find(absl::string_view) const override { return 0; }
  void Begin(ServerCall& stream) override { Serve(stream); }
  wire::CallStatus Refuse(const ServerCall&, int, const absl::Status& status) const override {
    return {static_cast<int>(status.code()), std::string(status.message()), "", {}};
  }
  bool AnyoneWaits() const override { return false; }
  std::atomic<int> live{0};

 private:
  loop::Detached Serve(ServerCall& stream) {
    ++live;
    loop::Event read, finished;
    Message message;
    stream.Read(message, read);
    co_await read;
    stream.Finish({}, finished);
    co_await finished;
    stream.End();
    --live;
  }
};

class RealTransport {
 public:
  explicit RealTransport(Limits limits = {}, size_t loops = 2)
      : receiving_(64 << 20, 64 << 10, 100), context_{service_, pool_, receiving_, limits} {
    std::vector<loop::Loop*> pointers;
    for (size_t i = 0; i < loops; ++i)
      pointers.push_back(loops_.emplace_back(loop::NewLoop()).get());
    transport_ = std::make_unique<Transport>(context_, pointers);
    address_ = transport_->Listen("127.0.0.1:0").value();
    for (loop::Loop* loop : pointers) threads_.emplace_back([loop] { loop->Lead(); });
    transport_->Start();
  }
  ~RealTransport() {
    transport_->Close();
    while (service_.live != 0) std::this_thread::yield();
    for (const auto& loop : loops_) loop::RunOn(*loop, [] {});
    for (const auto& loop : loops_) loop->Stop();
    for (std::thread& thread : threads_) thread.join();
    EXPECT_EQ(context_.counters.connections, 0);
    EXPECT_EQ(context_.counters.calls, 0);
    EXPECT_EQ(context_.connections.taken(), 0U);
  }

  int Connect() const {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port =
        htons(static_cast<uint16_t>(std::stoi(address_.substr(address_.rfind(':') + 1))));
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&where), sizeof(where)), 0);
    return fd;
  }
  Transport& operator*() { return *transport_; }
  Transport* operator->() { return transport_.get(); }
  TransportContext& context() { return context_; }
  loop::Loop& loop(size_t i) { return *loops_[i]; }

 private:
  Ok service_;
  memory::Pool pool_;
  admission::Receiving receiving_;
  TransportContext context_;
  std::vector<std::unique_ptr<loop::Loop>> loops_;
  std::unique_ptr<Transport> transport_;
  std::string address_;
  std::vector<std::thread> threads_;
};

std::chrono::steady_clock::time_point In(int seconds) {
  return std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
}

// More than one iteration accepts.
TEST(Transport, WhoWaitsWhenItStopsListeningIsTaken) {
  constexpr int kClients = 200;
  RealTransport transport;
  std::latch over(1);
  loop::Job pause([&] { over.wait(); });
  transport.loop(0).Post(pause);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Client>(transport.Connect()));
    clients.back()->Say(CallHead(1, "/a/B", true));
  }
  std::thread drain([&] {
    transport->StopListening();
    transport->GoAway();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  over.count_down();
  drain.join();
  EXPECT_EQ(transport.context().counters.accepted, static_cast<uint64_t>(kClients));
  int answered = 0;
  for (const auto& client : clients) answered += client->Status(1) == 0 ? 1 : 0;
  EXPECT_EQ(answered, kClients);
  for (const auto& client : clients) client->Until([&] { return client->closed(); });
  clients.clear();
  EXPECT_TRUE(transport->WaitForConnections(In(10)));
}

TEST(Transport, EndsWithConnectionsInEveryState) {
  for (int round = 0; round < 20; ++round) {
    RealTransport transport;
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 10; ++i) {
      clients.push_back(std::make_unique<Client>(transport.Connect()));
      Client& client = *clients.back();
      client.Say(CallHead(1, "/a/B") + (i % 2 == 0 ? Data(1, Prefixed("x")).substr(0, 5 + i) : ""));
      if (i % 3 != 0) client.Pump();
    }
    if (round % 2 == 0) transport->GoAway();
  }
}

}  // namespace
}  // namespace quantd::transport
