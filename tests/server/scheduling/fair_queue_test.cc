// Turns: first come, first served within a peer; equal shares among peers, however they ask.
#include "server/scheduling/fair_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <vector>

#include "../loop/loop_testing.h"

namespace quantd::scheduling {
namespace {

struct Request : FairQueue::Entry {
  uint64_t peer = 0;
  uint64_t cost = 1;
  uint64_t number = 0;
};

// A peer that always has `requests` requests: whenever one is served it asks for the next one, at
// once, or (slow) when another request has been served in between.
struct Client {
  uint64_t peer;
  int requests;
  uint64_t cost;
  bool slow = false;
};

// What each peer gets when `rounds` requests are served: the sum of their costs.
std::map<uint64_t, double> Served(FairQueue& queue, const std::vector<Client>& clients,
                                  int rounds) {
  std::list<Request> all;
  std::map<uint64_t, double> served;
  std::map<uint64_t, bool> slow;
  for (const Client& client : clients) {
    slow[client.peer] = client.slow;
    for (int i = 0; i < client.requests; ++i) {
      Request& request = all.emplace_back();
      request.peer = client.peer;
      request.cost = client.cost;
      queue.Push(request, client.peer, client.cost);
    }
  }
  std::vector<Request*> later;
  for (int i = 0; i < rounds; ++i) {
    auto* const next = static_cast<Request*>(queue.First());
    if (next == nullptr) break;
    queue.Remove(*next, true);
    served[next->peer] += static_cast<double>(next->cost);
    for (Request* request : later) queue.Push(*request, request->peer, request->cost);
    later.clear();
    if (slow[next->peer]) {
      later.push_back(next);
    } else {
      queue.Push(*next, next->peer, next->cost);
    }
  }
  for (Request& request : all) {
    if (request.queued()) queue.Remove(request, false);
  }
  EXPECT_TRUE(queue.empty());
  return served;
}

void ExpectEqualShares(const std::vector<Client>& clients) {
  FairQueue queue;
  const std::map<uint64_t, double> served = Served(queue, clients, 4000);
  ASSERT_EQ(served.size(), clients.size()) << "somebody got nothing";
  double all = 0;
  for (const auto& [peer, sum] : served) all += sum;
  const double share = all / static_cast<double>(clients.size());
  for (const auto& [peer, sum] : served) {
    EXPECT_NEAR(sum / share, 1, 0.2) << "peer " << peer;
  }
}

TEST(FairQueue, SharesEquallyAmongPeersThatAlwaysWait) {
  ExpectEqualShares({{1, 8, 10}, {2, 8, 10}});
  ExpectEqualShares({{1, 64, 10}, {2, 1, 10}});
  ExpectEqualShares({{1, 1, 10}, {2, 64, 10}});
  ExpectEqualShares({{1, 8, 10}, {2, 8, 70}});
  ExpectEqualShares({{1, 64, 70}, {2, 1, 10}});
  ExpectEqualShares({{1, 64, 10}, {2, 1, 70}});
  ExpectEqualShares({{1, 8, 10}, {2, 3, 100}, {3, 1, 1}, {4, 5, 30}, {5, 2, 7}});
}

// Each asks again only when another request has been served, so its line is empty in between.
TEST(FairQueue, SharesEquallyAmongPeersWhoseLinesAreEmptyForAMoment) {
  ExpectEqualShares({{1, 2, 10, true}, {2, 2, 10, true}});
  ExpectEqualShares({{1, 64, 10, true}, {2, 2, 10, true}});
  ExpectEqualShares({{1, 2, 10, true}, {2, 64, 10, true}});
  ExpectEqualShares({{1, 1, 10}, {2, 1, 10}});
  ExpectEqualShares({{1, 1, 10}, {2, 2, 10, true}, {3, 16, 10}});
}

// A peer collects no credit while it is away: when it comes back, it gets as much as the others.
TEST(FairQueue, AReturningPeerGetsNoCreditForItsAbsence) {
  FairQueue queue;
  // While peer 1 waits, peer 2 arrives for the first time.
  std::deque<Request> first(100), second(100);
  for (Request& request : first) {
    request.peer = 1;
    queue.Push(request, 1, 10);
  }
  for (int i = 0; i < 50; ++i) queue.Remove(*queue.First(), true);
  for (Request& request : second) {
    request.peer = 2;
    queue.Push(request, 2, 10);
  }
  int of_second = 0;
  for (int i = 0; i < 20; ++i) {
    auto* const next = static_cast<Request*>(queue.First());
    of_second += next->peer == 2 ? 1 : 0;
    queue.Remove(*next, true);
  }
  EXPECT_GE(of_second, 9);
  EXPECT_LE(of_second, 11);
  while (queue.First() != nullptr) queue.Remove(*queue.First(), false);
}

TEST(FairQueue, AReturningPeerPaysNothingForWhatItGotWhenItWasAlone) {
  FairQueue queue;
  Request lone;
  for (int i = 0; i < 1000; ++i) {
    queue.Push(lone, 1, 1'000'000);
    queue.Remove(lone, true);
  }
  std::deque<Request> others(100);
  for (Request& request : others) queue.Push(request, 2, 10);
  queue.Push(lone, 1, 10);
  int before = 0;
  while (queue.First() != &lone) {
    queue.Remove(*queue.First(), true);
    ++before;
  }
  EXPECT_LE(before, 2);
  while (queue.First() != nullptr) queue.Remove(*queue.First(), false);
}

TEST(FairQueue, OfPeersThatAreEvenTheOneThatCameFirstIsNext) {
  FairQueue queue;
  std::deque<Request> requests(100);
  // In an order that differs from that of the peers' numbers, so that their lines lie anywhere.
  for (uint64_t i = 0; i < requests.size(); ++i) queue.Push(requests[i], i * 37 % 101, 10);
  for (Request& request : requests) {
    ASSERT_EQ(queue.First(), &request);
    queue.Remove(request, true);
  }
}

TEST(FairQueue, APeerThatTakesARequestBackKeepsItsTurn) {
  FairQueue queue;
  std::deque<Request> first(2), second(2);
  for (Request& request : first) queue.Push(request, 1, 10);
  for (Request& request : second) queue.Push(request, 2, 10);
  queue.Remove(first[0], false);
  EXPECT_EQ(queue.First(), &first[1]);
  for (Request* request : {&first[1], &second[0], &second[1]}) queue.Remove(*request, false);
}

// Random pushes, removals and turns: nothing is lost, and the requests of a peer stay in order.
TEST(FairQueue, KeepsEveryPeersOrderWhateverIsRemoved) {
  loop::Random random(loop::TestSeed());
  FairQueue queue;
  std::map<uint64_t, std::deque<Request*>> expected;
  std::list<Request> all(300);
  std::vector<Request*> idle;
  for (Request& request : all) idle.push_back(&request);
  size_t size = 0;
  const auto take_out = [&](Request* request, bool served) {
    auto& line = expected[request->peer];
    const auto place = std::find(line.begin(), line.end(), request);
    ASSERT_NE(place, line.end());
    EXPECT_TRUE(!served || place == line.begin()) << "not the peer's first";
    line.erase(place);
    queue.Remove(*request, served);
    EXPECT_FALSE(request->queued());
    idle.push_back(request);
    --size;
  };
  for (int step = 0; step < 50'000 && !testing::Test::HasFailure(); ++step) {
    const uint64_t what = loop::Below(random, 5);
    if (what <= 1 && !idle.empty()) {
      const size_t which = loop::Below(random, idle.size());
      Request* const request = idle[which];
      idle.erase(idle.begin() + static_cast<ptrdiff_t>(which));
      request->peer = loop::Below(random, 10) * loop::Below(random, 10);
      request->cost = loop::Below(random, 1000);
      queue.Push(*request, request->peer, request->cost);
      expected[request->peer].push_back(request);
      ++size;
    } else if (what == 2) {
      auto& line = expected[loop::Below(random, 10)];
      if (!line.empty()) take_out(line[loop::Below(random, line.size())], false);
    } else if (auto* const first = static_cast<Request*>(queue.First())) {
      take_out(first, !loop::OneIn(random, 4));
    }
    ASSERT_EQ(queue.size(), size);
    ASSERT_EQ(queue.empty(), queue.First() == nullptr);
  }
  while (queue.First() != nullptr) take_out(static_cast<Request*>(queue.First()), true);
  EXPECT_EQ(size, 0u);
}

TEST(FairQueue, ShortOnesPassMuchLongerOnesOfTheirPeer) {
  FairQueue queue(1000);
  std::deque<Request> all;
  const auto push = [&](uint64_t peer, uint64_t cost) {
    Request& request = all.emplace_back();
    request.cost = cost;
    queue.Push(request, peer, cost);
  };
  const auto served = [&] {
    std::vector<uint64_t> costs;
    while (FairQueue::Entry* const next = queue.First()) {
      costs.push_back(static_cast<Request*>(next)->cost);
      queue.Remove(*next, true);
    }
    return costs;
  };
  for (const uint64_t cost : {100, 26, 400, 25, 1, 100, 5}) push(7, cost);
  EXPECT_EQ(served(), (std::vector<uint64_t>{1, 5, 100, 26, 25, 100, 400}));

  // Only among a peer's own requests, and no request waits for ever.
  push(7, 1000);
  for (int i = 0; i < 2 * FairQueue::kMostPassed; ++i) push(7, 10);
  std::vector<uint64_t> want(FairQueue::kMostPassed, 10);
  want.push_back(1000);
  want.resize(2 * FairQueue::kMostPassed + 1, 10);
  EXPECT_EQ(served(), want);
}

}  // namespace
}  // namespace quantd::scheduling
