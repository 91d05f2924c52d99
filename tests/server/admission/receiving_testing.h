// An upload that only records what it is told, and memory for some of them.
#ifndef QUANTD_TESTS_SERVER_ADMISSION_RECEIVING_TESTING_H_
#define QUANTD_TESTS_SERVER_ADMISSION_RECEIVING_TESTING_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "admission_testing.h"
#include "server/admission/receiving.h"

namespace quantd::admission {

class TestCall final : public scheduling::Holder {
 public:
  TestCall(loop::Loop& loop, uint64_t peer, std::function<void(TestCall&)> on_displaced = {})
      : Holder(loop, peer, loop::Clock::now()), on_displaced_(std::move(on_displaced)) {}

 private:
  void OnDisplaced() override {
    if (on_displaced_) on_displaced_(*this);
  }
  const std::function<void(TestCall&)> on_displaced_;
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
  // A new call that it belongs to.
  TestCall& Of(loop::Loop& loop, uint64_t peer) {
    return calls_.emplace_back(loop, peer, [this](TestCall& displaced) {
      if (&displaced != &call()) return;  // it is over
      given_up = true;
      if (on_told) on_told();
    });
  }
  TestCall& call() { return calls_.back(); }

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
};

using Begun = Receiving::Begun;

inline constexpr uint64_t kWindow = 64 << 10;
// 2 MiB for first windows, 14 MiB for the rest.
inline constexpr uint64_t kBudget = 16 * kMiB;
inline constexpr uint64_t kFirstWindows = 2 * kMiB / kWindow;
inline constexpr uint64_t kLarge = 14 * kMiB;
inline constexpr std::chrono::milliseconds kStall{200};

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
  // From now on, uploads that have not moved stand still.
  void StandStill() {
    std::this_thread::sleep_for(kStall);
    receiving_.Look();
    Deliver();
  }
  void Release(TestUpload& upload) {
    receiving_.Release(upload);
    Deliver();
    EXPECT_FALSE(receiving_.Told(upload));
    EXPECT_FALSE(upload.holds());
  }

  loop::LedLoop loop_;
  Receiving receiving_{kBudget, kWindow, 4, kStall};
};

}  // namespace quantd::admission

#endif  // QUANTD_TESTS_SERVER_ADMISSION_RECEIVING_TESTING_H_
