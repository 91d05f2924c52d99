// What a probe finds at servers that speak HTTP/2, at others, and where there is none.
#include "server/net/probe.h"

#include <gtest/gtest.h>
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
    thread_.join();
  }
  const std::string& address() const { return listening_.address; }

 private:
  void Run() {
    while (!ended_) {
      const int fd = accept(listening_.listeners[0].fd(), nullptr, nullptr);
      if (fd < 0) {
        std::this_thread::sleep_for(milliseconds(1));
        continue;
      }
      for (const char c : response_) {
        std::this_thread::sleep_for(pause_);
        send(fd, &c, 1, MSG_NOSIGNAL);
      }
      while (!ended_ && response_.empty()) {
        std::this_thread::sleep_for(milliseconds(1));
      }
      std::this_thread::sleep_for(milliseconds(5));
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

TEST(Probe, KnowsWhoSpeaksHttp2) {
  const Speaker good("127.0.0.1:0", kSettings);
  EXPECT_EQ(Probe(good.address(), "", milliseconds(5'000)), Found::kServer);
  const Speaker slow("127.0.0.1:0", kSettings, milliseconds(5));
  EXPECT_EQ(Probe(slow.address(), "", milliseconds(5'000)), Found::kServer);
  const Speaker other("127.0.0.1:0", "HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_EQ(Probe(other.address(), "", milliseconds(5'000)), Found::kNobody);
  const Speaker little("127.0.0.1:0", kSettings.substr(0, 5));
  EXPECT_EQ(Probe(little.address(), "", milliseconds(5'000)), Found::kNobody);
}

TEST(Probe, FindsAServerOnEveryAddress) {
  for (const char* address : {"0.0.0.0:0", "[::]:0", "localhost:0"}) {
    const Speaker speaker(address, kSettings);
    EXPECT_EQ(Probe(speaker.address(), "", milliseconds(5'000)), Found::kServer) << address;
  }
  const std::string path = testing::TempDir() + "quantd-probe-" + std::to_string(getpid());
  const Speaker local("unix:" + path, kSettings);
  EXPECT_EQ(Probe("unix:" + path, "", milliseconds(5'000)), Found::kServer);
  EXPECT_EQ(Probe("unix://" + path, "", milliseconds(5'000)), Found::kServer);
}

TEST(Probe, FindsNobodyAndDoesNotWaitForLong) {
  EXPECT_EQ(Probe("127.0.0.1:1", "", milliseconds(5'000)), Found::kNobody);
  EXPECT_EQ(Probe("unix:/no/such/socket", "", milliseconds(5'000)), Found::kNobody);
  EXPECT_EQ(Probe("unix:" + std::string(1'000, 'x'), "", milliseconds(5'000)), Found::kNobody);
  EXPECT_EQ(Probe("", "", milliseconds(5'000)), Found::kNobody);
  EXPECT_EQ(Probe("nonsense", "", milliseconds(5'000)), Found::kNobody);
  const Speaker silent("127.0.0.1:0", "");
  EXPECT_EQ(Probe(silent.address(), "", milliseconds(100)), Found::kNobody);
}

TEST(Probe, BlamesNobodyForItsOwnLackOfDescriptors) {
  const Speaker speaker("127.0.0.1:0", kSettings);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Found server = Probe(speaker.address(), "", milliseconds(5'000));
  const Found local = Probe("unix:/no/such/socket", "", milliseconds(5'000));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(server, Found::kUnknown);
  EXPECT_EQ(local, Found::kUnknown);
  EXPECT_EQ(Probe(speaker.address(), "", milliseconds(5'000)), Found::kServer);
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
