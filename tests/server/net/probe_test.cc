// What a probe finds at servers that speak HTTP/2, at others, and where there is none.
#include "server/net/probe.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "server/net/listen.h"

namespace quantd::net {
namespace {

using std::chrono::milliseconds;

// Answers every connection with the same bytes, one at a time, `pause` before each.
class Speaker {
 public:
  Speaker(const std::string& address, std::string response, milliseconds pause = milliseconds(0))
      : listening_(Listen(address, "--listen").value()),
        response_(std::move(response)),
        pause_(pause) {
    thread_ = std::thread([this] { Run(); });
  }
  ~Speaker() {
    ended_ = true;
    ended_.notify_all();
    thread_.join();
  }
  const std::string& address() const { return listening_.address; }

 private:
  void Run() {
    const int listener = listening_.listeners[0].fd();
    while (!ended_) {
      pollfd knock = {.fd = listener, .events = POLLIN, .revents = 0};
      if (poll(&knock, 1, 10) <= 0) continue;
      const int fd = accept(listener, nullptr, nullptr);
      for (const char c : response_) {
        std::this_thread::sleep_for(pause_);
        send(fd, &c, 1, MSG_NOSIGNAL);
      }
      if (response_.empty()) ended_.wait(false);
      // A close before the peer's bytes are read would be a reset.
      shutdown(fd, SHUT_WR);
      char bytes[100];
      while (recv(fd, bytes, sizeof(bytes), 0) > 0) {
      }
      close(fd);
    }
  }
  Listening listening_;
  const std::string response_;
  const milliseconds pause_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

const std::string kSettings("\0\0\0\4\0\0\0\0\0", 9);

Found Find(const std::string& address, int patience = 5'000) {
  return Probe(address, "", milliseconds(patience));
}

TEST(Probe, KnowsWhoSpeaksHttp2) {
  EXPECT_EQ(Find(Speaker("127.0.0.1:0", kSettings).address()), Found::kServer);
  EXPECT_EQ(Find(Speaker("127.0.0.1:0", kSettings, milliseconds(5)).address()), Found::kServer);
  EXPECT_EQ(Find(Speaker("127.0.0.1:0", "HTTP/1.1 400 Bad Request\r\n\r\n").address()),
            Found::kNobody);
  EXPECT_EQ(Find(Speaker("127.0.0.1:0", kSettings.substr(0, 5)).address()), Found::kNobody);
  EXPECT_EQ(Find(Speaker("127.0.0.1:0", "").address(), 100), Found::kNobody);  // silent
}

TEST(Probe, FindsAServerOnEveryAddress) {
  const std::string path = testing::TempDir() + "quantd-probe-" + std::to_string(getpid());
  for (const std::string& address :
       {std::string("0.0.0.0:0"), std::string("[::]:0"), std::string("localhost:0"), "unix:" + path,
        "unix://" + path}) {
    EXPECT_EQ(Find(Speaker(address, kSettings).address()), Found::kServer) << address;
  }
  for (const std::string& address :
       {std::string("127.0.0.1:1"), std::string("unix:/no/such/socket"),
        "unix:" + std::string(1'000, 'x'), std::string(), std::string("nonsense")}) {
    EXPECT_EQ(Find(address), Found::kNobody) << address;
  }
}

TEST(Probe, BlamesNobodyForItsOwnLackOfDescriptors) {
  const Speaker speaker("127.0.0.1:0", kSettings);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Found server = Find(speaker.address());
  const Found local = Find("unix:/no/such/socket");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(server, Found::kUnknown);
  EXPECT_EQ(local, Found::kUnknown);
  EXPECT_EQ(Find(speaker.address()), Found::kServer);
}

// Alive until two probes have failed, and again after one success.
TEST(Prober, BelievesTwoFailures) {
  auto speaker = std::make_unique<Speaker>("127.0.0.1:0", kSettings);
  const std::string address = speaker->address();
  Prober prober(address);
  EXPECT_TRUE(prober.Alive());
  prober.Look();
  EXPECT_TRUE(prober.Alive());
  speaker.reset();
  prober.Look();
  EXPECT_TRUE(prober.Alive());
  prober.Look();
  EXPECT_FALSE(prober.Alive());
  speaker = std::make_unique<Speaker>(address, kSettings);
  prober.Look();
  EXPECT_TRUE(prober.Alive());
  // If nobody asks, nothing is probed.
  speaker.reset();
  prober.Look();
  for (int i = 0; i < 5; ++i) prober.Look();
  EXPECT_TRUE(prober.Alive());
}

}  // namespace
}  // namespace quantd::net
