#include "server/stored_parameters/worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>

namespace quantd::stored_parameters {
namespace {

TEST(Worker, RequestsComeFirst) {
  std::promise<void> go;
  std::promise<void> done;
  std::string order;
  {
    Worker worker(10);
    std::shared_future<void> may_go = go.get_future().share();
    ASSERT_TRUE(worker.Submit(Worker::kLast, [may_go] { may_go.wait(); }));
    for (const char word : {'x', 'y'}) {
      ASSERT_TRUE(worker.Submit(Worker::kLast, [&order, word] { order += word; }));
    }
    for (const char word : {'a', 'b'}) {
      ASSERT_TRUE(worker.Submit(Worker::kFirst, [&order, word] { order += word; }));
    }
    ASSERT_TRUE(worker.Submit(Worker::kLast, [&done] { done.set_value(); }));
    go.set_value();
    done.get_future().wait();
  }
  // The first job may have been at work before the others came, and that is all.
  EXPECT_EQ(order, "abxy");
}

TEST(Worker, SoManyWaitAndNoMore) {
  std::promise<void> go;
  std::shared_future<void> may_go = go.get_future().share();
  std::promise<void> begun;
  std::atomic<int> ran{0};
  auto held = std::make_shared<int>(1);
  {
    Worker worker(3);
    ASSERT_TRUE(worker.Submit(Worker::kFirst, [may_go, &begun] {
      begun.set_value();
      may_go.wait();
    }));
    begun.get_future().wait();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(worker.Submit(Worker::kFirst, [&ran, held] { ++ran; }));
    EXPECT_FALSE(worker.Submit(Worker::kFirst, [&ran] { ++ran; }));
    EXPECT_TRUE(worker.Submit(Worker::kLast, [&ran, held] { ++ran; }));
    go.set_value();
  }
  EXPECT_LE(ran, 4);
  EXPECT_EQ(held.use_count(), 1);  // those that were dropped hold nothing
}

}  // namespace
}  // namespace quantd::stored_parameters
