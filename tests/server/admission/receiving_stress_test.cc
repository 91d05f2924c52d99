// Random uploads, on one loop and on two: they stay within the budget at every moment, nothing is
// lost, and every upload that goes on is completed.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <latch>
#include <memory>
#include <vector>

#include "receiving_testing.h"
#include "server/scheduling/thread_pool.h"

namespace quantd::admission {
namespace {

// The uploads of one loop. Makes some steps at a time, and continues after functions posted since.
class Player final : private loop::Posted {
 public:
  Player(Receiving& receiving, uint64_t most_bytes, loop::Loop& loop, uint64_t seed,
         std::latch& over)
      : receiving_(receiving), most_bytes_(most_bytes), loop_(loop), random_(seed), over_(over) {}

  void Start(int steps) {
    steps_ = steps;
    loop_.Post(*this);
  }

  uint64_t completed = 0, refused = 0, given_up = 0, told = 0;

 private:
  struct Client {
    TestUpload upload;
    bool active = false;
    uint64_t total = 0;
    uint64_t received = 0;
    uint64_t granted = 0;
  };

  void Run() override {
    if (steps_ > 0) {
      for (int i = 0; i < 20; ++i) Step();
      steps_ -= 20;
    } else {
      FinishAll();
      if (std::none_of(clients_.begin(), clients_.end(),
                       [](const Client& c) { return c.active; })) {
        receiving_.GiveFirst(kept_);
        return over_.count_down();
      }
      ASSERT_LT(++rounds_, 100'000) << "somebody never gets to the end";
    }
    loop_.AtIterationEnd(*this);
  }

  void Step() {
    // Not at every step: it takes the lock, and would hide that somebody else forgot to.
    if (loop::OneIn(random_, 50)) {
      EXPECT_LE(receiving_.held_bytes(), most_bytes_);
    }
    Client& client = clients_[loop::Below(random_, clients_.size())];
    if (loop::OneIn(random_, 10)) receiving_.Look();
    if (loop::OneIn(random_, 10)) Keep();
    if (!client.active) {
      Begin(client);
    } else if (loop::OneIn(random_, 30)) {
      Release(client);  // cancelled
    } else if (client.received == client.total) {
      Complete(client);
    } else {
      Receive(client, loop::Below(random_, client.granted - client.received + 1));
    }
  }

  // From now on every client sends all that it may.
  void FinishAll() {
    for (Client& client : clients_) {
      if (!client.active) continue;
      Receive(client, client.granted - client.received);
      if (client.received == client.total) Complete(client);
    }
    receiving_.Look();
  }

  void Keep() {
    if (kept_.amount() != 0) return receiving_.GiveFirst(kept_);
    receiving_.TakeFirst(kept_, keeper_, loop::Below(random_, kWindow));
  }

  void Begin(Client& client) {
    const bool small = loop::OneIn(random_, 2);
    client.total = loop::Below(random_, small ? kWindow + 1 : receiving_.largest() + 1);
    client.received = 0;
    client.granted = std::min(client.total, kWindow);
    client.upload.on_told = [this, &client] { OnTold(client); };
    const Receiving::Begun begun = receiving_.Begin(
        client.upload, client.total, client.upload.Of(loop_, loop::Below(random_, 4)), loop_);
    client.active = begun != Receiving::Begun::kRefused;
    refused += client.active ? 0 : 1;
    EXPECT_EQ(client.upload.holds(), client.active);
  }

  void Receive(Client& client, uint64_t bytes) {
    client.received += bytes;
    client.upload.call().Moved(loop::Clock::now());
    if (client.received + kWindow / 2 >= client.granted) Extend(client);
  }

  void Extend(Client& client) {
    if (client.total <= kWindow) return;
    const Receiving::Room room = receiving_.Extend(client.upload, client.received);
    EXPECT_GE(room.granted, client.granted);
    EXPECT_LE(room.granted, client.total);
    client.granted = room.granted;
  }

  void OnTold(Client& client) {
    ++told;
    if (!client.active) return;
    if (client.upload.given_up.exchange(false)) {
      ++given_up;
      return Release(client);
    }
    Extend(client);
  }

  void Complete(Client& client) {
    ++completed;
    Release(client);
  }
  void Release(Client& client) {
    receiving_.Release(client.upload);
    client.active = false;
  }

  Receiving& receiving_;
  const uint64_t most_bytes_;
  loop::Loop& loop_;
  loop::Random random_;
  std::latch& over_;
  int steps_ = 0;
  int rounds_ = 0;
  TestCall keeper_{loop_, 1};
  scheduling::Place kept_;
  std::deque<Client> clients_{std::deque<Client>(80)};
};

// `stall`: 0: each upload stands still at once. First windows of those that lose their places count
// until they are back, on top of the budget.
void Play(int loop_count, int steps, std::chrono::milliseconds stall = std::chrono::seconds(5)) {
  const bool stands = stall.count() == 0;
  const uint64_t most_bytes = kBudget + (stands ? kFirstWindows * kWindow / 8 : 0);
  const uint64_t seed = loop::TestSeed();
  Receiving receiving(kBudget, kWindow, 25, stall);
  std::latch over(loop_count);
  std::vector<std::unique_ptr<loop::Loop>> loops;
  std::vector<loop::Loop*> all;
  std::deque<Player> players;
  for (int i = 0; i < loop_count; ++i) {
    all.push_back(loops.emplace_back(loop::NewLoop()).get());
    players.emplace_back(receiving, most_bytes, *all.back(), seed + static_cast<uint64_t>(i), over);
  }
  {
    scheduling::ThreadPool thread_pool(all, 0);
    for (Player& player : players) player.Start(steps);
    over.wait();
    // Everything that was posted has run.
    for (loop::Loop* loop : all) RunOn(*loop, [] {});
  }
  EXPECT_EQ(receiving.held_bytes(), 0u);
  EXPECT_EQ(receiving.waiting(), 0);
  uint64_t given_up = 0, refused = 0, told = 0;
  for (const Player& player : players) {
    EXPECT_GT(player.completed, 0u);
    refused += player.refused;
    told += player.told;
    given_up += player.given_up;
  }
  // All of it happened.
  EXPECT_EQ(given_up > 0, stands);
  EXPECT_GT(refused, 0u);
  EXPECT_GT(told, 0u);
}

TEST(ReceivingStress, LosesNothingWhateverHappens) { Play(1, 40'000); }

TEST(ReceivingStress, LosesNothingWhateverHappensOnTwoLoops) { Play(2, 20'000); }

TEST(ReceivingStress, LosesNothingWhoeverStandsStill) {
  Play(2, 20'000, std::chrono::milliseconds(0));
}

}  // namespace
}  // namespace quantd::admission
