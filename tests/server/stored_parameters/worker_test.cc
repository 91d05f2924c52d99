#include "server/stored_parameters/worker.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>

namespace quantd::stored_parameters {
namespace {

constexpr uint64_t kPeer = 1;

// A worker whose thread waits in its first job until Go.
class Standing {
 public:
  explicit Standing(size_t most) : worker_(most) {
    EXPECT_TRUE(worker_.Submit(first_, Worker::kLast, kPeer, [this] {
      begun_.set_value();
      may_go_.wait();
    }));
    begun_.get_future().wait();
  }
  ~Standing() { Go(); }
  void Go() {
    if (!std::exchange(gone_, true)) go_.set_value();
  }
  Worker& operator*() { return worker_; }
  Worker* operator->() { return &worker_; }

 private:
  std::promise<void> begun_, go_;
  std::shared_future<void> may_go_ = go_.get_future().share();
  bool gone_ = false;
  Worker::Waiting first_;
  Worker worker_;
};

// Records the jobs in the order in which they run, one letter each.
class Order {
 public:
  void Add(Worker& worker, Worker::Priority priority, uint64_t peer, char word) {
    EXPECT_TRUE(worker.Submit(waiting_.at(used_++), priority, peer, [this, word] {
      words_ += word;
      if (words_.size() == used_) done_.set_value();
    }));
  }
  // Waits for all of them, and returns their letters.
  std::string Words(Standing& worker) {
    worker.Go();
    done_.get_future().wait();
    return words_;
  }

 private:
  std::array<Worker::Waiting, 40> waiting_;
  size_t used_ = 0;
  std::string words_;
  std::promise<void> done_;
};

TEST(Worker, RequestsComeFirst) {
  Standing worker(10);
  Order order;
  for (const char word : {'x', 'y'}) order.Add(*worker, Worker::kLast, kPeer, word);
  for (const char word : {'a', 'b'}) order.Add(*worker, Worker::kFirst, kPeer, word);
  EXPECT_EQ(order.Words(worker), "abxy");
}

// A peer's many jobs wait behind each other, not before those of other peers.
TEST(Worker, PeersTakeTurns) {
  for (const Worker::Priority priority : {Worker::kFirst, Worker::kLast}) {
    Standing worker(100);
    Order order;
    for (const char word : {'a', 'b', 'c', 'd', 'e'}) order.Add(*worker, priority, 7, word);
    for (const char word : {'p', 'q'}) order.Add(*worker, priority, 8, word);
    order.Add(*worker, priority, 9, 'x');
    EXPECT_EQ(order.Words(worker), "apxbqcde");
  }
}

TEST(Worker, SoManyWaitAndNoMore) {
  std::array<Worker::Waiting, 8> waiting;
  std::atomic<int> ran{0};
  auto held = std::make_shared<int>(1);
  const auto job = [&ran, held] { ++ran; };
  {
    Standing worker(4);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(worker->Submit(waiting[i], Worker::kFirst, kPeer, job));
    }
    // One peer cannot take the last quarter.
    EXPECT_FALSE(worker->Submit(waiting[3], Worker::kFirst, kPeer, job));
    EXPECT_TRUE(worker->Submit(waiting[3], Worker::kFirst, kPeer + 1, job));
    EXPECT_FALSE(worker->Submit(waiting[4], Worker::kFirst, kPeer + 2, job));
    EXPECT_TRUE(worker->Submit(waiting[4], Worker::kLast, kPeer, job));
    worker.Go();
  }
  EXPECT_LE(ran, 5);
  EXPECT_EQ(held.use_count(), 2);  // dropped jobs hold nothing; `job` does
}

TEST(Worker, WhatIsTakenBackHoldsNothingAndNeverRuns) {
  Standing worker(4);
  auto held = std::make_shared<int>(1);
  Worker::Waiting waiting;
  std::atomic<bool> ran{false};
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(worker->Submit(waiting, Worker::kLast, kPeer, [&ran, held] { ran = true; }));
    EXPECT_EQ(held.use_count(), 2);
    EXPECT_TRUE(worker->Cancel(waiting));
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_FALSE(worker->Cancel(waiting));
  }
  Order order;
  order.Add(*worker, Worker::kLast, kPeer, 'a');
  EXPECT_EQ(order.Words(worker), "a");
  EXPECT_FALSE(ran);
  EXPECT_FALSE(worker->Cancel(waiting));
}

// If the disk does not answer, End waits only for the given time.
TEST(Worker, EndsWithoutADiskThatHangs) {
  using Clock = std::chrono::steady_clock;
  auto* const worker = new Standing(4);
  auto held = std::make_shared<int>(1);
  Worker::Waiting waiting;
  ASSERT_TRUE((*worker)->Submit(waiting, Worker::kFirst, kPeer, [held] {}));
  const Clock::time_point begin = Clock::now();
  EXPECT_FALSE((*worker)->End(begin + std::chrono::milliseconds(100)));
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(100));
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_FALSE((*worker)->Submit(waiting, Worker::kFirst, kPeer, [held] {}));
  // The thread is detached now, and uses the worker until it ends.
  static Standing* left;
  left = worker;
  left->Go();
}

TEST(Worker, EndsAsSoonAsItsJobHasEnded) {
  Standing worker(4);
  worker.Go();
  EXPECT_TRUE(worker->End(std::chrono::steady_clock::now() + std::chrono::hours(1)));
}

}  // namespace
}  // namespace quantd::stored_parameters
