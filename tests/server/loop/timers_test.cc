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

TEST(Timers, FireInOrderOfTimeAndOnlyWhatIsDue) {
  Timers timers;
  std::string fired;
  TestTimer a([&](TestTimer&) { fired += 'a'; });
  TestTimer b([&](TestTimer&) { fired += 'b'; });
  TestTimer c([&](TestTimer&) { fired += 'c'; });
  timers.Set(c, kBegin + milliseconds(3));
  timers.Set(a, kBegin + milliseconds(1));
  timers.Set(b, kBegin + milliseconds(2));
  EXPECT_EQ(timers.next(), kBegin + milliseconds(1));
  timers.Fire(kBegin);
  EXPECT_EQ(fired, "");
  timers.Fire(kBegin + milliseconds(2));
  EXPECT_EQ(fired, "ab");
  EXPECT_FALSE(b.set());
  EXPECT_EQ(timers.next(), kBegin + milliseconds(3));
  timers.Clear(c);
  timers.Clear(c);  // does nothing
  EXPECT_TRUE(timers.empty());
  timers.Fire(kBegin + milliseconds(3));
  EXPECT_EQ(fired, "ab");
}

TEST(Timers, OneThatFiresMaySetItselfAndOthersAgainAndClearThem) {
  Timers timers;
  std::string fired;
  TestTimer late([&](TestTimer&) { fired += 'l'; });
  TestTimer never([&](TestTimer&) { fired += 'n'; });
  TestTimer repeated([&](TestTimer& self) {
    EXPECT_FALSE(self.set());
    fired += 'r';
    if (fired.size() < 3) timers.Set(self, self.when() + milliseconds(1));  // also due
    timers.Set(late, kBegin + milliseconds(7));
    timers.Clear(never);
  });
  timers.Set(repeated, kBegin + milliseconds(1));
  timers.Set(never, kBegin + milliseconds(2));
  timers.Fire(kBegin + milliseconds(5));
  EXPECT_EQ(fired, "rrr");
  timers.Fire(kBegin + milliseconds(7));
  EXPECT_EQ(fired, "rrrl");
}

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

  std::multimap<Clock::time_point, TestTimer*>::iterator Expected(TestTimer& timer) {
    auto found = expected_.begin();
    while (found != expected_.end() && found->second != &timer) ++found;
    EXPECT_EQ(found != expected_.end(), timer.set());
    return found;
  }
  void Set(TestTimer& timer) {
    // Many at the same time, some of them past.
    const Clock::time_point when = now_ + milliseconds(Below(random_, 60)) - milliseconds(2);
    if (const auto found = Expected(timer); found != expected_.end()) expected_.erase(found);
    expected_.emplace(when, &timer);
    timers_.Set(timer, when);
    EXPECT_TRUE(timer.set());
    EXPECT_EQ(timer.when(), when);
  }
  void Clear(TestTimer& timer) {
    if (const auto found = Expected(timer); found != expected_.end()) expected_.erase(found);
    timers_.Clear(timer);
    EXPECT_FALSE(timer.set());
  }
  void OnFire(TestTimer& timer) {
    ++fired_;
    EXPECT_FALSE(timer.set());
    ASSERT_FALSE(expected_.empty());
    EXPECT_EQ(timer.when(), expected_.begin()->first) << "not the first one";
    EXPECT_LE(timer.when(), now_);
    auto found = expected_.begin();
    while (found != expected_.end() && found->second != &timer) ++found;
    ASSERT_NE(found, expected_.end()) << "fired, but not set";
    expected_.erase(found);
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
