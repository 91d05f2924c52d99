// An upload that only records what it is told, and memory for some of them.
#ifndef QUANTD_TESTS_SERVER_ADMISSION_RECEIVING_TESTING_H_
#define QUANTD_TESTS_SERVER_ADMISSION_RECEIVING_TESTING_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>

#include "admission_testing.h"
#include "server/admission/receiving.h"

namespace quantd::admission {

class TestCall final : public scheduling::Holder {
 public:
  TestCall(loop::Loop& loop, uint64_t peer) : Holder(loop, peer, loop::Clock::now()) {}

 private:
  void OnDisplaced() override {}
};

class TestUpload final : public Upload {
 public:
  TestUpload() = default;
  TestUpload(const TestUpload&) = delete;
  // It may be about to be told something.
  ~TestUpload() {
    if (of == nullptr) return;
    of->Release(*this);
    RunOn(*home, [] {});
  }
  // The call that it belongs to.
  scheduling::Holder& Of(loop::Loop& loop, uint64_t peer) {
    return calls_.emplace_back(loop, peer);
  }

  std::atomic<int> rooms{0};
  std::atomic<bool> given_up{false};
  std::function<void()> on_told;  // called on its loop
  // If set, it is released with the test.
  Receiving* of = nullptr;
  loop::Loop* home = nullptr;

 private:
  std::deque<TestCall> calls_;
  void OnRoom() override {
    ++rooms;
    if (on_told) on_told();
  }
  void OnGivenUp() override {
    given_up = true;
    if (on_told) on_told();
  }
};

using Begun = Receiving::Begun;

inline constexpr uint64_t kWindow = 64 << 10;
// 2 MiB for first windows, 14 MiB for the rest.
inline constexpr uint64_t kBudget = 16 * kMiB;
inline constexpr uint64_t kFirstWindows = 2 * kMiB / kWindow;
inline constexpr uint64_t kLarge = 14 * kMiB;

class ReceivingTest : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(receiving_.held_bytes(), 0u);
    EXPECT_EQ(receiving_.waiting(), 0);
  }
  // Waits until uploads have been told everything.
  void Deliver() {
    RunOn(*loop_, [] {});
  }
  Begun Begin(TestUpload& upload, uint64_t total, uint64_t peer = 1) {
    upload.of = &receiving_;
    upload.home = loop_.get();
    return receiving_.Begin(upload, total, upload.Of(*loop_, peer), *loop_);
  }
  // `received` bytes have arrived, and it asks for more. Returns whether all of it has its place.
  bool Extend(TestUpload& upload, uint64_t received) {
    return receiving_.Extend(upload, received).reserved;
  }
  // Reserves memory for all of `upload`, and leaves its window unused.
  void Reserve(TestUpload& upload, uint64_t total, uint64_t peer = 1) {
    ASSERT_NE(Begin(upload, total, peer), Begun::kRefused);
    ASSERT_TRUE(Extend(upload, kWindow));
  }
  // Begins, and asks for more than there is.
  void Wait(TestUpload& upload, uint64_t total, uint64_t peer = 1) {
    ASSERT_EQ(Begin(upload, total, peer), Begun::kFirst);
    ASSERT_FALSE(Extend(upload, kWindow));
  }
  // Looks `later` after the first look, however long the test has really taken. An upload that has
  // not moved for half a second by then stands still.
  void Look(std::chrono::milliseconds later) {
    if (!first_look_.has_value()) first_look_ = loop::Clock::now();
    receiving_.Look(*first_look_ + later);
  }
  void Release(TestUpload& upload) {
    receiving_.Release(upload);
    Deliver();
    EXPECT_FALSE(receiving_.Told(upload));
    EXPECT_FALSE(upload.holds());
  }

  loop::LedLoop loop_;
  Receiving receiving_{kBudget, kWindow, 4};
  std::optional<loop::Clock::time_point> first_look_;
};

}  // namespace quantd::admission

#endif  // QUANTD_TESTS_SERVER_ADMISSION_RECEIVING_TESTING_H_
