// Timers against a multimap, whatever is set, moved and cancelled, and from where.
#include "server/loop/timers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "loop_testing.h"

namespace quantd::loop {
namespace {

using std::chrono::milliseconds;

const Clock::time_point kBegin{};

class TestTimer final : public Timer {
 public:
  explicit TestTimer(std::function<void(TestTimer&)> fire) : fire_(std::move(fire)) {}

 private:
  void Fire() override { fire_(*this); }
  const std::function<void(TestTimer&)> fire_;
};

// Does the same with timers and with a multimap.
class Model {
 public:
  explicit Model(Random& random) : random_(random) {
    for (int i = 0; i < 200; ++i) {
      all_.push_back(std::make_unique<TestTimer>([this](TestTimer& timer) { OnFire(timer); }));
    }
  }
  ~Model() {
    for (const auto& timer : all_) timers_.Clear(*timer);
  }

  void Step() {
    switch (Below(random_, 4)) {
      case 0:
        now_ += milliseconds(Below(random_, 20));
        timers_.Fire(now_);
        EXPECT_TRUE(expected_.empty() || expected_.begin()->first > now_);
        break;
      case 1:
        Clear(Any());
        break;
      default:
        Set(Any());
    }
    ASSERT_EQ(timers_.empty(), expected_.empty());
    if (expected_.empty()) return;
    EXPECT_EQ(timers_.next(), expected_.begin()->first);
  }

  size_t fired() const { return fired_; }

 private:
  TestTimer& Any() { return *all_[Below(random_, all_.size())]; }

  // Whether it was expected.
  bool Forget(TestTimer& timer) {
    return std::erase_if(expected_, [&](const auto& one) { return one.second == &timer; }) != 0;
  }
  void Set(TestTimer& timer) {
    // Many at the same time, some of them past.
    const Clock::time_point when = now_ + milliseconds(Below(random_, 60)) - milliseconds(2);
    EXPECT_EQ(timer.set(), Forget(timer));
    expected_.emplace(when, &timer);
    timers_.Set(timer, when);
    EXPECT_TRUE(timer.set());
    EXPECT_EQ(timer.when(), when);
  }
  void Clear(TestTimer& timer) {
    EXPECT_EQ(timer.set(), Forget(timer));
    timers_.Clear(timer);
    EXPECT_FALSE(timer.set());
  }
  void OnFire(TestTimer& timer) {
    ++fired_;
    EXPECT_FALSE(timer.set());
    ASSERT_FALSE(expected_.empty());
    EXPECT_EQ(timer.when(), expected_.begin()->first) << "not the first one";
    EXPECT_LE(timer.when(), now_);
    ASSERT_TRUE(Forget(timer)) << "fired, but not set";
    if (OneIn(random_, 4)) Set(timer);
    if (OneIn(random_, 4)) Set(Any());
    if (OneIn(random_, 4)) Clear(Any());
  }

  Random& random_;
  Clock::time_point now_ = kBegin;
  Timers timers_;
  std::vector<std::unique_ptr<TestTimer>> all_;
  std::multimap<Clock::time_point, TestTimer*> expected_;
  size_t fired_ = 0;
};

TEST(Timers, DoWhatAMultimapDoes) {
  Random random(TestSeed());
  Model model(random);
  for (int i = 0; i < 50'000 && !testing::Test::HasFailure(); ++i) model.Step();
  EXPECT_GT(model.fired(), 1000u);
}

}  // namespace
}  // namespace quantd::loop
