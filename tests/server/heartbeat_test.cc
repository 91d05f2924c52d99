#include "server/heartbeat.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

namespace quantd::server {
namespace {

TEST(Heartbeat, ALoopThatRunsNothingIsDead) {
  const std::unique_ptr<loop::Loop> runs = *loop::Loop::Create(), stands = *loop::Loop::Create();
  Heartbeat one({runs.get()}, std::chrono::seconds(60));
  Heartbeat both({runs.get(), stands.get()}, std::chrono::nanoseconds(1));
  EXPECT_TRUE(one.Alive());
  EXPECT_TRUE(both.Alive());
  std::thread leader([&] { runs->Lead(); });
  EXPECT_FALSE(both.Alive());
  EXPECT_TRUE(one.Alive());
  std::thread other([&] { stands->Lead(); });
  while (!both.Alive()) std::this_thread::yield();  // it was only late
  runs->Stop();
  stands->Stop();
  leader.join();
  other.join();
}

}  // namespace
}  // namespace quantd::server
