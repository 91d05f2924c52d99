// Permits against a model that keeps no sums: it counts all permits anew for every question, and
// has every rule of admission.h as a sentence. One peer and one thread: turns belong to the queue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "admission_testing.h"

namespace quantd::admission {
namespace admission_model_test {

constexpr uint64_t kBudget = 8 * kMiB;
constexpr uint64_t kLargePart = 7 * kMiB;
constexpr int64_t kMost = 6;
constexpr int64_t kMostLarge = 5;
constexpr int64_t kMostQueued = 5;
constexpr int64_t kMostQueuedOfOne = 4;  // there is one peer here

// A permit, and what the model knows of it.
struct Call {
  Permit permit;
  Admission::Waiting waiting;
  loop::Event granted;
  bool large = false;
  bool counted = false;
  uint64_t bytes = 0;
  uint64_t wanted = 0;  // while it waits

  bool idle() const { return bytes == 0 && wanted == 0 && !counted; }
};

class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed) {}

  // Returns how many were granted after they had waited.
  int Run() {
    for (int step = 0; step < 300 && !testing::Test::HasFailure(); ++step) Step();
    // When it ends, nobody may wait or be about to be told something.
    for (const auto& call : calls_) admission_.Cancel(call->waiting);
    for (const auto& call : calls_) call->permit.Release();
    Deliver(loop_);
    int granted = 0;
    for (const auto& call : calls_) {
      granted += call->granted.ready() && call->granted.await_resume() ? 1 : 0;
    }
    return granted;
  }

 private:
  template <typename Of>
  uint64_t Sum(Of of) const {
    uint64_t sum = 0;
    for (const auto& call : calls_) sum += of(*call);
    return sum;
  }
  uint64_t All() const {
    return Sum([](const Call& call) { return call.bytes; });
  }
  uint64_t Large() const {
    return Sum([](const Call& call) { return call.large ? call.bytes : 0; });
  }
  int64_t Count(bool large_only) const {
    return static_cast<int64_t>(Sum([&](const Call& call) {
      return static_cast<uint64_t>(call.counted && (call.large || !large_only));
    }));
  }
  bool NoLargeOne() const { return Large() == 0 && Count(true) == 0; }

  // Three quarters, and three times what is free.
  bool WithinShare(uint64_t bytes) const {
    const uint64_t has = Large();
    return has == 0 || has + bytes <= std::min(kLargePart / 4 * 3, 3 * (kLargePart - has));
  }
  bool Fits(bool large, uint64_t bytes) const {
    if (Count(false) >= kMost || All() + bytes > kBudget) return false;
    if (!large) return true;
    if (NoLargeOne()) return true;
    return Count(true) < kMostLarge && Large() + bytes <= kLargePart && WithinShare(bytes);
  }
  static void Take(Call& call, uint64_t bytes) {
    call.bytes = bytes;
    call.wanted = 0;
    call.counted = true;
  }
  // Until no waiting call fits.
  void Grant() {
    for (bool any = true; any;) {
      any = false;
      for (std::deque<Call*>& queue : queues_) {
        while (!queue.empty() && Fits(queue.front()->large, queue.front()->wanted)) {
          Take(*queue.front(), queue.front()->wanted);
          queue.pop_front();
          any = true;
        }
      }
    }
  }

  uint64_t Queued() const { return queues_[0].size() + queues_[1].size(); }
  // Mostly one that has memory or waits for it.
  Call& Any() {
    Call* any = nullptr;
    for (int i = 0; i < 100 && (any == nullptr || any->idle()); ++i) {
      any = calls_[Below(calls_.size())].get();
    }
    return *any;
  }
  Call& New() { return *calls_.emplace_back(std::make_unique<Call>()); }
  uint64_t RandomBytes(uint64_t most) { return 1 + (loop::Below(random_, most) >> Below(8)); }
  uint64_t Below(uint64_t end) { return loop::Below(random_, end); }

  void Step() {
    switch (calls_.size() < 4 ? 0 : Below(12)) {
      case 0:
      case 1:
      case 2:
        Ask();
        break;
      case 3: {
        Call& call = Any();
        const uint64_t bytes = Below(call.bytes + 2);
        trace_ = absl::StrCat("shrink to ", bytes);
        call.permit.Shrink(bytes);
        call.bytes = std::min(call.bytes, bytes);
        Grant();
        break;
      }
      case 4: {
        Call& call = Any();
        trace_ = "computed";
        call.permit.Computed();
        call.counted = false;
        Grant();
        break;
      }
      case 5:
        Move();
        break;
      case 6:
        Cancel();
        break;
      default: {
        Call& call = Any();
        trace_ = "release";
        call.permit.Release();
        call.bytes = 0;
        call.counted = false;
        Grant();
        break;
      }
    }
    Check();
  }

  void Ask() {
    Call& call = New();
    const bool large = Below(2) == 0;
    const uint64_t edges[] = {kSmall, kSmall + 1, kLargePart, kLargePart + 1, kBudget, kBudget + 1};
    uint64_t bytes = large ? kSmall + RandomBytes(kBudget - kSmall) : RandomBytes(kSmall);
    if (Below(8) == 0) bytes = edges[Below(6)];
    trace_ = absl::StrCat("ask for ", bytes);
    const absl::StatusOr<bool> now =
        admission_.Request({bytes, 0, loop_.get(), &call.granted}, call.waiting, call.permit);
    call.large = bytes > kSmall;
    std::deque<Call*>& queue = queues_[call.large];
    if (bytes > kBudget) {
      EXPECT_EQ(now.status().code(), absl::StatusCode::kResourceExhausted);
      EXPECT_THAT(std::string(now.status().message()),
                  testing::AllOf(testing::HasSubstr("--memory_budget_bytes"),
                                 testing::HasSubstr(absl::StrCat(bytes))));
    } else if (queue.empty() && Fits(call.large, bytes)) {
      EXPECT_TRUE(now.ok() && *now);
      Take(call, bytes);
    } else if (static_cast<int64_t>(Queued()) >= kMostQueued) {
      EXPECT_EQ(now.status().code(), absl::StatusCode::kUnavailable);
      EXPECT_EQ(now.status().message(),
                absl::StrCat("the server is busy: ", Count(false), " requests with ", All(),
                             " bytes are in progress and ", Queued(),
                             " wait (--max_queued_requests); try again later"));
    } else if (static_cast<int64_t>(Queued()) >= kMostQueuedOfOne) {
      EXPECT_EQ(now.status().code(), absl::StatusCode::kUnavailable);
      EXPECT_EQ(
          now.status().message(),
          absl::StrCat("the server is busy: ", Queued(), " requests of this client wait, and ",
                       kMostQueued, " may wait in all (--max_queued_requests); try again later"));
    } else {
      EXPECT_TRUE(now.ok() && !*now);
      call.wanted = bytes;
      queue.push_back(&call);
    }
  }

  // A permit is the same in any place. Where it comes to, the one before it is given up.
  void Move() {
    Call& from = Any();
    Call& to = Any();
    if (from.wanted != 0 || to.wanted != 0) return;
    trace_ = "move";
    to.permit = std::move(from.permit);
    if (&from != &to) {
      from.permit.Release();   // does nothing
      from.permit.Computed();  // does nothing
      to.bytes = std::exchange(from.bytes, 0);
      to.counted = std::exchange(from.counted, false);
      to.large = from.large;
    }
    Permit elsewhere(std::move(to.permit));
    EXPECT_EQ(to.permit.bytes(), 0u);
    to.permit = std::move(elsewhere);
    Grant();
  }

  void Cancel() {
    Call& call = Any();
    if (call.idle()) return;
    trace_ = "cancel";
    EXPECT_EQ(admission_.Cancel(call.waiting), call.wanted != 0);
    if (call.wanted == 0) return;
    call.wanted = 0;
    std::erase(queues_[call.large], &call);
    Grant();
  }

  void Check() const {
    for (size_t i = 0; i < calls_.size(); ++i) {
      EXPECT_EQ(calls_[i]->permit.bytes(), calls_[i]->bytes) << trace_ << ", call " << i;
    }
    EXPECT_EQ(admission_.inflight_bytes(), All()) << trace_;
    EXPECT_EQ(admission_.inflight_requests(), Count(false)) << trace_;
    EXPECT_EQ(admission_.queued_requests(), static_cast<int64_t>(Queued())) << trace_;
    EXPECT_EQ(admission_.anyone_waits(), Queued() > 0) << trace_;
    EXPECT_EQ(admission_.has_plenty(),
              Queued() == 0 && All() <= kBudget / 2 && Count(false) <= kMost / 2)
        << trace_;
  }

  loop::Random random_;
  LedLoop loop_;
  Admission admission_{{kBudget, kMost, kMostQueued}};
  std::vector<std::unique_ptr<Call>> calls_;
  std::deque<Call*> queues_[2];  // small and large calls
  std::string trace_;            // the last steps
};

TEST(AdmissionModel, SaysWhatAdmissionSays) {
  const uint64_t seed = loop::TestSeed();
  int granted = 0;
  for (uint64_t i = 0; i < 12; ++i) {
    SCOPED_TRACE(absl::StrCat("QUANTD_TEST_SEED=", seed + i));
    Model model(seed + i);
    granted += model.Run();
    if (HasFailure()) return;
  }
  EXPECT_GT(granted, 50);
}

}  // namespace admission_model_test
}  // namespace quantd::admission
