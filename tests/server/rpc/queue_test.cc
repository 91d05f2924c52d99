// What a queue does with writes that are held: on its polling thread, and elsewhere.
#include "server/rpc/queue.h"

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "server/rpc/call.h"
#include "server/rpc/event.h"

namespace quantd::rpc {
namespace {

class CountedWrite final : public HeldWrite {
 public:
  void Write() override {
    if (writes_.fetch_add(1) == 0) written_.set_value();
  }
  int writes() const { return writes_; }
  bool WaitForWrite() {
    return written_.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  }

 private:
  std::atomic<int> writes_{0};
  std::promise<void> written_;
};

// Runs `then` on the polling thread.
Call OnPoller(Calls& /*calls*/, Event& event, std::function<void()> then) {
  co_await event;
  then();
}

class QueueTest : public testing::Test {
 protected:
  // A queue needs a server, which must be up before anything polls.
  QueueTest() {
    grpc::ServerBuilder builder;
    queue_ = std::make_unique<Queue>(builder.AddCompletionQueue());
    server_ = builder.BuildAndStart();
    queue_->Start(1);
  }
  ~QueueTest() override {
    calls_.WaitForNone();
    server_->Shutdown();
    queue_->Shutdown();
  }

  void Poll(std::function<void()> then) {
    Event event;
    grpc::Alarm alarm;
    OnPoller(calls_, event, std::move(then));
    alarm.Set(queue_->get(), std::chrono::system_clock::now(), event.tag());
    calls_.WaitForNone();
  }

  Calls calls_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(QueueTest, WritesWhatIsHeldWhenNothingElseCompletes) {
  CountedWrite first, second;
  Poll([&] {
    queue_->Hold(first);
    queue_->Hold(second);
  });
  EXPECT_TRUE(first.WaitForWrite());
  EXPECT_TRUE(second.WaitForWrite());
  EXPECT_FALSE(queue_->Take(first));
  EXPECT_EQ(first.writes(), 1);
}

TEST_F(QueueTest, DoesNotWriteWhatWasTakenBack) {
  CountedWrite taken, held;
  bool was_held = false;
  Poll([&] {
    queue_->Hold(taken);
    queue_->Hold(held);
    was_held = queue_->Take(taken);
  });
  EXPECT_TRUE(held.WaitForWrite());
  EXPECT_TRUE(was_held);
  EXPECT_EQ(taken.writes(), 0);
}

// No poller would look after it: they may all wait for something to complete.
TEST_F(QueueTest, WritesAtOnceElsewhere) {
  CountedWrite write;
  queue_->Hold(write);
  EXPECT_EQ(write.writes(), 1);
  EXPECT_FALSE(queue_->Take(write));
}

}  // namespace
}  // namespace quantd::rpc
