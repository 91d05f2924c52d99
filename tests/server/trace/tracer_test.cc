// Sampling, and collectors that answer, fail, never answer or send nonsense.
#include "server/trace/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"

namespace quantd::trace {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// Listens on a port; one thread runs `serve` for each connection, one after another.
class Collector {
 public:
  explicit Collector(std::function<void(int fd)> serve) : serve_(std::move(serve)) {
    signal(SIGPIPE, SIG_IGN);
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    socklen_t size = sizeof(address);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~Collector() {
    over_ = true;
    thread_.join();
    close(listener_);
  }
  Endpoint endpoint() const {
    Endpoint endpoint;
    endpoint.host = "127.0.0.1";
    endpoint.port = port_;
    return endpoint;
  }
  bool over() const { return over_; }
  std::atomic<int> connections{0};

 private:
  void Run() {
    while (!over_) {
      pollfd polled = {listener_, POLLIN, 0};
      if (poll(&polled, 1, 10) <= 0) continue;
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      ++connections;
      serve_(fd);
      close(fd);
    }
  }
  const std::function<void(int)> serve_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// Reads a request with a body.
std::string ReadRequest(int fd) {
  std::string request;
  size_t wanted = std::string::npos;
  while (request.size() < wanted) {
    char bytes[4096];
    const ssize_t count = read(fd, bytes, sizeof(bytes));
    if (count <= 0) break;
    request.append(bytes, static_cast<size_t>(count));
    const size_t end = request.find("\r\n\r\n");
    const size_t length = request.find("Content-Length: ");
    if (end != std::string::npos && length != std::string::npos) {
      wanted = end + 4 + std::stoul(request.substr(length + 16));
    }
  }
  return request;
}

void Say(int fd, const std::string& text) {
  [[maybe_unused]] const ssize_t wrote = write(fd, text.data(), text.size());
}

std::string Response(int code) {
  return "HTTP/1.1 " + std::to_string(code) + " x\r\nContent-Length: 0\r\n\r\n";
}

Settings For(const Endpoint& endpoint) {
  Settings settings;
  settings.destination.endpoint = endpoint;
  settings.sampler.ratio = 1;
  settings.resource = {"1.0", {{"service.name", "quantd"}}};
  settings.interval = milliseconds(10);
  settings.post_time = milliseconds(300);
  return settings;
}

bool Within(seconds time, const std::function<bool()>& condition) {
  const auto end = steady_clock::now() + time;
  while (!condition()) {
    if (steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

Context Parent(bool sampled) {
  Context parent;
  parent.trace_id.fill(1);
  parent.span_id.fill(2);
  parent.sampled = sampled;
  return parent;
}

// Like "localhost" when nothing listens on ::1.
TEST(Poster, TriesTheHostsOtherAddresses) {
  Collector collector([](int fd) {
    EXPECT_THAT(ReadRequest(fd), testing::HasSubstr("\r\nHost: collector:"));
    Say(fd, Response(200));
  });
  Destination destination;
  destination.endpoint = collector.endpoint();
  destination.endpoint.host = "collector";
  destination.addresses_of = [](const std::string&) {
    return std::vector<std::string>{"::1", "127.0.0.2", "127.0.0.1"};
  };
  Poster poster(destination);
  EXPECT_TRUE(poster.Post("spans", seconds(20)).ok());
  EXPECT_EQ(collector.connections, 1);
}

// The first address that answers is used, whatever the answer.
TEST(Poster, AsksNobodyElseAfterAResponse) {
  Collector collector([](int fd) {
    ReadRequest(fd);
    Say(fd, Response(503));
  });
  Destination destination;
  destination.endpoint = collector.endpoint();
  destination.addresses_of = [](const std::string& host) {
    return std::vector<std::string>{host, host};
  };
  Poster poster(destination);
  EXPECT_TRUE(absl::IsUnavailable(poster.Post("spans", seconds(20))));
  EXPECT_EQ(collector.connections, 1);
}

TEST(Poster, SaysThatAHostHasNoAddress) {
  Destination destination;
  destination.endpoint.host = "nowhere.invalid";
  Poster poster(destination);
  const absl::Status status = poster.Post("spans", seconds(20));
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("nowhere.invalid has no address"));
  EXPECT_THAT(AddressesOf("127.0.0.1"), testing::ElementsAre("127.0.0.1"));
}

TEST(Tracer, TheCallerDecidesElseTheRatio) {
  Collector collector([](int fd) { Say(fd, Response(200)); });
  Settings settings = For(collector.endpoint());
  for (const double ratio : {0.0, 1.0}) {
    settings.sampler.ratio = ratio;
    Tracer tracer(settings);
    const auto span = tracer.Begin(Parent(true));
    ASSERT_TRUE(span.has_value());
    EXPECT_EQ(span->trace_id, Parent(true).trace_id);
    EXPECT_NE(span->span_id, Parent(true).span_id);
    EXPECT_FALSE(tracer.Begin(Parent(false)).has_value());
    EXPECT_EQ(tracer.Begin(std::nullopt).has_value(), ratio == 1.0);
  }
  settings.sampler.ratio = 0.25;
  Tracer tracer(settings);
  int sampled = 0;
  for (int i = 0; i < 4000; ++i) sampled += tracer.Begin(std::nullopt).has_value() ? 1 : 0;
  EXPECT_GT(sampled, 700);
  EXPECT_LT(sampled, 1300);
}

TEST(Tracer, ASamplerThatAsksNoParentDecidesByTheTraceId) {
  Collector collector([](int fd) { Say(fd, Response(200)); });
  Settings settings = For(collector.endpoint());
  settings.sampler.parents_decide = false;
  for (const double ratio : {0.0, 0.5, 1.0}) {
    settings.sampler.ratio = ratio;
    Tracer tracer(settings);
    for (const bool sampled : {false, true}) {
      Context parent = Parent(sampled);
      EXPECT_EQ(tracer.Begin(parent).has_value(), ratio > 0);  // 0x0101... is below it
      parent.trace_id.fill(0xff);
      const auto span = tracer.Begin(parent);
      ASSERT_EQ(span.has_value(), ratio == 1.0);
      if (span.has_value()) {
        EXPECT_TRUE(span->sampled);
        EXPECT_EQ(span->trace_id, parent.trace_id);
      }
    }
    EXPECT_TRUE(ratio == 0.5 || tracer.Begin(std::nullopt).has_value() == (ratio == 1.0));
  }
}

TEST(Tracer, SpansReachTheCollectorInBatches) {
  std::atomic<int> posts{0};
  Collector collector([&](int fd) {
    const std::string request = ReadRequest(fd);
    EXPECT_TRUE(absl::StartsWith(request, "POST /v1/traces HTTP/1.1\r\n")) << request;
    EXPECT_TRUE(absl::StrContains(request, "Content-Type: application/x-protobuf\r\n"));
    ++posts;
    Say(fd, Response(200));
  });
  Tracer tracer(For(collector.endpoint()));
  for (int i = 0; i < 2000; ++i) tracer.Add({});
  EXPECT_TRUE(Within(seconds(20), [&] { return tracer.exported() == 2000; }));
  EXPECT_LT(posts.load(), 100);
  EXPECT_EQ(tracer.dropped().full + tracer.dropped().failed, 0U);
}

TEST(Tracer, HeadersGoAlongAndTheBodyIsPacked) {
  std::string request;
  std::atomic<int> posts{0};
  Collector collector([&](int fd) {
    if (posts == 0) request = ReadRequest(fd);
    ++posts;
    Say(fd, Response(200));
  });
  Settings settings = For(collector.endpoint());
  settings.destination.headers = {{"api-key", "s3cret"}, {"User-Agent", "other"}};
  settings.destination.gzip = true;
  Tracer tracer(settings);
  for (size_t i = 0; i < Tracer::kBatch; ++i) tracer.Add({});
  EXPECT_TRUE(
      Within(seconds(20), [&] { return posts > 0 && tracer.exported() == Tracer::kBatch; }));
  EXPECT_TRUE(absl::StrContains(request, "api-key: s3cret\r\n")) << request;
  EXPECT_TRUE(absl::StrContains(request, "Content-Encoding: gzip\r\n"));
  EXPECT_TRUE(absl::StrContains(request, "User-Agent: other\r\n"));
  EXPECT_FALSE(absl::StrContains(request, "User-Agent: quantd"));
  EXPECT_TRUE(absl::StrContains(request, "\r\n\r\n\x1f\x8b"));
}

TEST(Tracer, ClosingExportsWhatWaits) {
  Collector collector([](int fd) {
    ReadRequest(fd);
    Say(fd, Response(202));
  });
  Settings settings = For(collector.endpoint());
  settings.interval = seconds(3600);
  Tracer tracer(settings);
  for (int i = 0; i < 100; ++i) tracer.Add({});
  tracer.Close(seconds(20));
  EXPECT_EQ(tracer.exported(), 100U);
  tracer.Add({});
  EXPECT_EQ(tracer.dropped().full, 1U);
}

TEST(Tracer, ADeafCollectorCostsSpansAndNoTime) {
  Collector* self = nullptr;
  Collector collector([&](int) {
    while (!self->over()) std::this_thread::sleep_for(milliseconds(1));
  });
  self = &collector;
  Settings settings = For(collector.endpoint());
  settings.post_time = seconds(3600);
  Tracer tracer(settings);
  const auto begin = steady_clock::now();
  constexpr uint64_t kSpans = 4 * Tracer::kMostWaiting;
  for (uint64_t i = 0; i < kSpans; ++i) tracer.Add({});
  EXPECT_LT(steady_clock::now() - begin, seconds(10));
  EXPECT_GE(tracer.dropped().full, kSpans - Tracer::kMostWaiting - 2 * Tracer::kBatch);
  tracer.Close(milliseconds(50));
  EXPECT_LT(steady_clock::now() - begin, seconds(20));
  EXPECT_EQ(tracer.exported(), 0U);
}

// No answer at all; responses that are retried, and one that is not; endless headers, endless
// bodies, bytes that are not HTTP.
TEST(Tracer, WhatTheCollectorDoesNotTakeIsCounted) {
  const auto endless = [](const std::string& begin, const std::string& piece) {
    return [=](int fd) {
      ReadRequest(fd);
      Say(fd, begin);
      std::string much;
      while (much.size() < (64 << 10)) much += piece;
      // Until the client closes: 64 MiB is more than any may read.
      for (int i = 0; i < 1024; ++i) {
        if (send(fd, much.data(), much.size(), MSG_NOSIGNAL) <= 0) return;
      }
      ADD_FAILURE() << "all of it was taken";
    };
  };
  const std::function<void(int)> kinds[] = {
      [](int) {},
      [](int fd) { ReadRequest(fd), Say(fd, Response(503)); },
      [](int fd) { ReadRequest(fd), Say(fd, Response(400)); },
      [](int fd) { ReadRequest(fd), Say(fd, std::string(1000, '\0')); },
      endless("HTTP/1.1 200 OK\r\n", "X-A: b\r\n"),
      endless("HTTP/1.1 200 OK\r\nX-A: ", "xxxxxxxx"),
      endless("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "xxxxxxxx"),
      endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "8\r\nxxxxxxxx\r\n"),
      endless("", "HTTP/1.1 100 Continue\r\nX: y\r\n\r\n"),
      endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "xxxxxxxx"),
  };
  int number = 0;
  for (const auto& kind : kinds) {
    Collector collector(kind);
    Settings settings = For(collector.endpoint());
    settings.post_time = seconds(number == 9 ? 1 : 20);  // the last is read for as long
    Tracer tracer(settings);
    for (int i = 0; i < 10; ++i) tracer.Add({});
    EXPECT_TRUE(Within(seconds(60), [&] { return tracer.dropped().failed == 10; })) << number;
    EXPECT_EQ(tracer.exported(), 0U) << number;
    EXPECT_EQ(collector.connections.load() == 1, number == 2) << number;
    ++number;
  }
  Settings nobody;
  {
    Collector collector([](int) {});
    nobody = For(collector.endpoint());
  }
  Tracer tracer(nobody);
  tracer.Add({});
  EXPECT_TRUE(Within(seconds(60), [&] { return tracer.dropped().failed == 1; }));
}

}  // namespace
}  // namespace quantd::trace
