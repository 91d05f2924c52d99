// Memory that calls hold between their permits: its bounds, and what it leaves to others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "admission_testing.h"

namespace quantd::admission {
namespace {

using ::testing::HasSubstr;

TEST(Admission, WhatIsHeldIsHalfOfTheBudgetAtMost) {
  LedLoop loop;
  Admission admission({1000, 8, 2});
  Permit none, held, other;
  EXPECT_EQ(admission.Hold(300, 0, none, held), absl::OkStatus());
  EXPECT_EQ(held.bytes(), 300u);
  EXPECT_EQ(admission.inflight_bytes(), 300u);
  EXPECT_EQ(admission.inflight_requests(), 0);  // it is not an active request
  // What is too much for one call is refused for good, what is too much for several only for now.
  const absl::Status alone = admission.Hold(201, 0, none, held);
  EXPECT_EQ(alone.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(alone.message()), HasSubstr("--memory_budget_bytes"));
  EXPECT_EQ(admission.Hold(UINT64_MAX, 0, none, held).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(admission.holds_refused(), 0u);
  EXPECT_EQ(admission.Hold(201, 0, none, other).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(admission.holds_refused(), 1u);
  EXPECT_EQ(other.bytes(), 0u);
  EXPECT_EQ(admission.Hold(200, 0, none, other), absl::OkStatus());
  held.Shrink(100);
  EXPECT_EQ(admission.inflight_bytes(), 300u);
  held.Release();
  other.Release();
  EXPECT_EQ(admission.inflight_bytes(), 0u);
}

TEST(Admission, WhatIsHeldComesOutOfAPermitFirst) {
  LedLoop loop;
  Admission admission({1000, 8, 2});
  Asker asker, filler;
  Permit held;
  EXPECT_TRUE(asker.Ask(admission, loop, 600));
  EXPECT_TRUE(filler.Ask(admission, loop, 400));
  EXPECT_EQ(admission.Hold(500, 400, asker.permit, held).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(admission.Hold(400, 400, asker.permit, held), absl::OkStatus());
  EXPECT_EQ(asker.permit.bytes(), 200u);
  EXPECT_EQ(held.bytes(), 400u);
  EXPECT_EQ(admission.inflight_bytes(), 1000u);
  asker.permit.Release();
  EXPECT_EQ(admission.Hold(100, 0, asker.permit, held), absl::OkStatus());
  EXPECT_EQ(held.bytes(), 500u);
  held.Release();
  EXPECT_EQ(admission.inflight_bytes(), 400u);
}

TEST(Admission, WhoHoldsIsRefusedForGoodWhatCanNeverFitBesideIt) {
  LedLoop loop;
  Admission admission({1000, 8, 2});
  Permit none, held;
  EXPECT_EQ(admission.Hold(400, 0, none, held), absl::OkStatus());
  Admission::Waiting waiting;
  AdmissionRequest request;
  Permit permit;
  loop::Event granted;
  request.loop = loop.get();
  request.granted = &granted;
  request.held = 400;
  request.bytes = 601;
  const absl::Status refusal = admission.Request(request, waiting, permit).status();
  EXPECT_EQ(refusal.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refusal.message()), HasSubstr("400 that it holds"));
  request.bytes = 600;
  EXPECT_EQ(admission.Request(request, waiting, permit).value_or(false), true);
}

// A request for more than the large ones' part must not keep small ones waiting while it waits for
// memory that a call holds, perhaps for long.
TEST(Admission, TheLargestDoesNotKeepOthersWaitingForWhatIsHeld) {
  LedLoop loop;
  Admission admission({64 * kMiB, 8, 4});
  Permit none, held;
  EXPECT_EQ(admission.Hold(kMiB, 0, none, held), absl::OkStatus());
  Asker largest, small;
  EXPECT_FALSE(largest.Ask(admission, loop, 64 * kMiB));
  EXPECT_TRUE(small.Ask(admission, loop, kSmall));
  small.permit.Release();
  held.Release();
  Deliver(loop);
  EXPECT_TRUE(largest.got());
}

// The small requests that it kept waiting go on at once, not only when another request ends.
TEST(Admission, SmallOnesGoOnWhenWhatIsHeldKeepsTheLargestOut) {
  LedLoop loop;
  Admission admission({64 * kMiB, 8, 4});
  Permit none, held;
  Asker early, largest, late;
  EXPECT_TRUE(early.Ask(admission, loop, kSmall));
  EXPECT_FALSE(largest.Ask(admission, loop, 64 * kMiB));
  EXPECT_FALSE(late.Ask(admission, loop, kSmall));
  EXPECT_EQ(admission.Hold(kMiB, 0, none, held), absl::OkStatus());
  Deliver(loop);
  EXPECT_TRUE(late.got());
  EXPECT_FALSE(largest.got());
}

}  // namespace
}  // namespace quantd::admission
