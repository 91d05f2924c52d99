// A server in this process: its pages, its addresses, and peers that send too much or too slowly.
#include "server/http/http.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "peer.h"

namespace quantd::http {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using std::chrono::milliseconds;

constexpr absl::string_view kGetLivez = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr absl::string_view kGetMetrics = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
// Limits that no test reaches.
constexpr HttpLimits kPatient = {.request_time = milliseconds(60'000),
                                 .response_time = milliseconds(60'000)};

HttpPages Pages(size_t metrics_bytes = 10) {
  return {.metrics = [=] { return std::string(metrics_bytes, 'm'); },
          .live = [] { return true; },
          .ready = [] { return true; }};
}

std::unique_ptr<HttpServer> Start(const HttpLimits& limits = {}, HttpPages pages = Pages(),
                                  absl::string_view address = "127.0.0.1:0") {
  return HttpServer::Start(address, std::move(pages), limits).value();
}

MATCHER(IsOk, "") { return absl::StartsWith(arg, "HTTP/1.1 200 OK\r\n"); }

TEST(HttpServer, Pages) {
  bool good = true;
  HttpPages pages = Pages();
  pages.live = pages.ready = [&] { return good; };
  const auto server = Start({}, pages);
  const auto ask = [&](absl::string_view request) {
    return Ask(server->address(), absl::StrCat(request, " HTTP/1.0\r\n\r\n"));
  };
  const auto get = [&](absl::string_view path) { return ask(absl::StrCat("GET ", path)); };
  EXPECT_THAT(
      get("/metrics?x=1"),
      AllOf(IsOk(), HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
            HasSubstr("\r\nContent-Length: 10\r\n"), HasSubstr("\r\nConnection: close\r\n"),
            EndsWith("\r\n\r\nmmmmmmmmmm")));
  EXPECT_THAT(get("/livez"), AllOf(IsOk(), EndsWith("\r\n\r\nok\n")));
  EXPECT_THAT(get("/readyz"), AllOf(IsOk(), EndsWith("\r\n\r\nok\n")));
  EXPECT_THAT(get("/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(get("/livez/"), StartsWith("HTTP/1.1 404 "));
  good = false;
  EXPECT_THAT(get("/livez"), AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("\r\n\r\nnot live\n")));
  EXPECT_THAT(get("/readyz"),
              AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("\r\n\r\nnot serving\n")));
  EXPECT_THAT(ask("HEAD /metrics"),
              AllOf(IsOk(), HasSubstr("\r\nContent-Length: 10\r\n"), EndsWith("\r\n\r\n")));
  EXPECT_THAT(ask("HEAD /nothing"), AllOf(StartsWith("HTTP/1.1 404 "), EndsWith("\r\n\r\n")));
  EXPECT_THAT(ask("DELETE /metrics"),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("\r\nAllow: GET, HEAD\r\n")));
}

TEST(HttpServer, AResponseIsSeenWhateverFollowsTheRequest) {
  const auto server = Start(kPatient);
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(Ask(server->address(), absl::StrCat(kGetLivez, std::string(100'000, '\0'))),
                AllOf(IsOk(), EndsWith("ok\n")));
    EXPECT_THAT(Ask(server->address(),
                    absl::StrCat("POST /livez HTTP/1.1\r\nContent-Length: 100000\r\n\r\n",
                                 std::string(100'000, 'a'))),
                AllOf(StartsWith("HTTP/1.1 405 "), EndsWith("only GET and HEAD are allowed\n")));
  }
}

TEST(HttpServer, AResponseOnItsWayIsNotLostToWhatFollowsTheRequest) {
  const auto server = Start(kPatient, Pages(200'000));
  const Peer peer(server->address(), 4096);
  peer.Send(absl::StrCat(kGetMetrics, std::string(40'000, 'a')));
  EXPECT_THAT(Ask(server->address(), kGetLivez), IsOk());  // then the other one is written
  EXPECT_GT(peer.ReadToEnd().size(), 200'000u);
}

TEST(HttpServer, WhoNeverStopsSendingIsCut) {
  const auto server = Start(kPatient);
  const Peer peer(server->address());
  peer.Send(kGetLivez);
  const std::string more(64 << 10, 'a');
  int sent = 0;
  while (sent < 1000 && peer.Send(more)) ++sent;
  EXPECT_LT(sent, 1000);
}

TEST(HttpServer, ARequestHasItsTimeHoweverItDrips) {
  const auto server = Start({.request_time = milliseconds(300)});
  const Peer peer(server->address());
  const auto begin = std::chrono::steady_clock::now();
  peer.Send("GET /livez HTTP/1.1\r\n");
  // Until it is closed. If each drip extended its time, that would never happen.
  int drips = 0;
  while (drips < 3'000 && peer.Send("X")) {
    ++drips;
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(290));
  EXPECT_LT(drips, 3'000);
  EXPECT_THAT(peer.ReadToEnd(), StartsWith("HTTP/1.1 408 "));
}

TEST(HttpServer, WhoSaysNothingIsClosedWithoutAWord) {
  const auto server = Start({.request_time = milliseconds(100)});
  EXPECT_THAT(Peer(server->address()).ReadToEnd(), IsEmpty());
}

TEST(HttpServer, OneMoreConnectionClosesTheOldest) {
  HttpLimits limits = kPatient;
  limits.connections = 4;
  const auto server = Start(limits);
  const Peer first(server->address()), second(server->address()), third(server->address()),
      fourth(server->address());
  EXPECT_THAT(Ask(server->address(), kGetLivez), IsOk());
  EXPECT_TRUE(first.EndsWithin(5000));
  // Other peers are still served.
  fourth.Send(kGetLivez);
  EXPECT_THAT(fourth.ReadToEnd(), IsOk());
  second.Send(kGetLivez);
  EXPECT_THAT(second.ReadToEnd(), IsOk());
}

TEST(HttpServer, PeersTakeTurns) {
  std::atomic<int> made = 0;
  std::atomic<bool> may = false;
  HttpPages pages = Pages();
  pages.metrics = [&] {
    ++made;
    may.wait(false);
    std::this_thread::sleep_for(milliseconds(5));  // longer than its turn
    return std::string("m");
  };
  const auto server = Start(kPatient, pages);
  std::vector<Peer> crowd;
  for (int i = 0; i < 100; ++i) crowd.emplace_back(server->address(), 0, 2).Send(kGetMetrics);
  const Peer probe(server->address(), 0, 3);
  probe.Send(kGetLivez);
  may = true;
  may.notify_all();
  EXPECT_THAT(probe.ReadToEnd(), IsOk());
  EXPECT_LT(made, 50);
  for (const Peer& peer : crowd) EXPECT_THAT(peer.ReadToEnd(), IsOk());
}

TEST(HttpServer, AResponseHasItsTime) {
  constexpr size_t kPage = 64 << 20;
  HttpLimits limits = {.response_time = milliseconds(300)};
  const auto server = Start(limits, Pages(kPage));
  const Peer peer(server->address(), 4096);
  peer.Send(kGetMetrics);
  std::this_thread::sleep_for(milliseconds(1000));
  const std::string received = peer.ReadToEnd();
  EXPECT_THAT(received.substr(0, 20), IsOk());
  EXPECT_LT(received.size(), kPage);
  // The peer was slow; the page was not too large.
  limits.response_time = milliseconds(60'000);
  const auto patient = Start(limits, Pages(kPage));
  EXPECT_GT(Ask(patient->address(), kGetMetrics).size(), kPage);
}

TEST(HttpServer, ResponsesThatNobodyTakesAreBoundedTogether) {
  constexpr size_t kPage = 16 << 20;  // more than the kernel buffers for a connection
  HttpLimits limits = kPatient;
  limits.response_bytes = 2 * kPage + kPage / 2;
  const auto server = Start(limits, Pages(kPage));
  std::vector<Peer> peers;
  for (int i = 0; i < 4; ++i) {
    peers.emplace_back(server->address(), 4096).Send(kGetMetrics);
    EXPECT_THAT(Ask(server->address(), kGetLivez), IsOk());  // then it is made
  }
  EXPECT_LT(peers[0].ReadToEnd().size(), kPage);
  EXPECT_LT(peers[1].ReadToEnd().size(), kPage);
  EXPECT_GT(peers[3].ReadToEnd().size(), kPage);
  EXPECT_GT(peers[2].ReadToEnd().size(), kPage);
}

TEST(HttpServer, PeersThatEndTheirHalf) {
  const auto server = Start(kPatient, Pages(100'000));
  const Peer whole(server->address(), 4096);
  whole.Send(kGetMetrics);
  whole.EndSending();
  EXPECT_GT(whole.ReadToEnd().size(), 100'000u);
  const Peer half(server->address());
  half.Send("GET /livez HTTP/1.1\r\n");
  half.EndSending();
  EXPECT_THAT(half.ReadToEnd(), IsEmpty());
}

TEST(HttpServer, StopsWithoutWaitingForPeers) {
  auto server = Start(kPatient, Pages(16 << 20));
  const Peer idle(server->address()), dripping(server->address()), reader(server->address(), 4096);
  dripping.Send("GET /");
  reader.Send(kGetMetrics);
  EXPECT_THAT(Ask(server->address(), kGetLivez), IsOk());
  const auto begin = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPatient.request_time);
  EXPECT_TRUE(idle.EndsWithin(20'000));
  EXPECT_TRUE(dripping.EndsWithin(20'000));
}

TEST(HttpServer, AnswersWhenTheProcessHasNoDescriptorsLeft) {
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit low = {.rlim_cur = 64, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  {
    const auto server = Start(kPatient);
    std::vector<UniqueFd> taken;
    while (taken.empty() || taken.back().is_open())
      taken.emplace_back(fcntl(0, F_DUPFD_CLOEXEC, 0));
    taken.pop_back();  // the one that failed
    for (int i = 0; i < 20; ++i) {
      taken.pop_back();
      // One is free now, for the peer. But while the server, in this process as well, closes the
      // connection before, there may be two.
      std::optional<Peer> peer;
      while (!peer.has_value() || !peer->connected()) peer.emplace(server->address());
      peer->Send(kGetLivez);
      EXPECT_THAT(peer->ReadToEnd(), IsOk()) << i;
      peer.reset();
      taken.emplace_back(fcntl(0, F_DUPFD_CLOEXEC, 0));
    }
  }
  setrlimit(RLIMIT_NOFILE, &limit);
}

TEST(HttpServer, TakesAQuarterOfTheDescriptorsAtMost) {
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit low = {.rlim_cur = 200, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const auto server = Start(kPatient);
  setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<Peer> peers;
  for (int i = 0; i < 51; ++i) peers.emplace_back(server->address());
  EXPECT_TRUE(peers[0].EndsWithin(5000));
  peers[1].Send(kGetLivez);
  EXPECT_THAT(peers[1].ReadToEnd(), IsOk());
}

}  // namespace
}  // namespace quantd::http
