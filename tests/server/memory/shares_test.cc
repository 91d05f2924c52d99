// How memory is divided, in figures, for containers of common sizes.
#include "server/memory/shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "wire_testing.h"

namespace quantd::memory {
namespace shares_test {

constexpr uint64_t kKiB = 1 << 10;
constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1 << 30;

// What options.cc asks for without flags.
constexpr Wanted Default(uint64_t limit, uint64_t cpus) {
  Wanted wanted;
  wanted.max_message = 64 * kMiB;
  wanted.connections = std::clamp<uint64_t>(limit >> 19, 64, 1024);
  wanted.calls = 1024 + 1024 + 256;
  wanted.threads = 3 * cpus;
  return wanted;
}

double InMiB(uint64_t bytes) { return static_cast<double>(bytes) / kMiB; }

TEST(SharesTest, OfEachContainer) {
  struct Row {
    uint64_t limit;
    double idle;  // in MiB, as all that follow
    double requests;
    double receiving;
    uint64_t window;
    double max_message;
  };
  // With 2 CPUs.
  const Row rows[] = {
      {64 * kMiB, 55.1, 5.0, 4.0, 64 * kKiB, 3.5},
      {128 * kMiB, 62.6, 36.8, 28.6, 64 * kKiB, 25.0},
      {256 * kMiB, 77.6, 100.3, 78.0, 64 * kKiB, 64},
      {512 * kMiB, 107.6, 227.5, 176.9, 64 * kKiB, 64},
      {1 * kGiB, 139.6, 497.5, 386.9, 128 * kKiB, 64},
      {4 * kGiB, 331.6, 2117.5, 1646.9, 256 * kKiB, 64},
      {24 * kGiB, 1611.6, 12917.5, 10046.9, kMiB + 64 * kKiB, 64},
  };
  for (const Row& row : rows) {
    const Shares shares = Divide(row.limit, Default(row.limit, 2));
    SCOPED_TRACE(InMiB(row.limit));
    EXPECT_EQ(shares.limit, row.limit);
    EXPECT_NEAR(InMiB(shares.idle), row.idle, 0.06);
    EXPECT_NEAR(InMiB(shares.requests), row.requests, 0.06);
    EXPECT_NEAR(InMiB(shares.receiving), row.receiving, 0.06);
    EXPECT_EQ(shares.window, row.window);
    EXPECT_NEAR(InMiB(shares.max_message), row.max_message, 0.06);
    EXPECT_EQ(shares.limited_by_receiving, row.max_message < 64);
    EXPECT_EQ(shares.most(), shares.idle + shares.requests + shares.receiving);
    EXPECT_EQ(shares.most() <= row.limit, row.limit >= 128 * kMiB);
  }
}

TEST(SharesTest, ABudgetForRequestsIsOneForReceivingToo) {
  Wanted wanted = Default(4 * kGiB, 2);
  wanted.requests = 100 * kMiB;
  const Shares large = Divide(4 * kGiB, wanted);
  EXPECT_EQ(large.requests, 100 * kMiB);
  // As much, plus room for the largest message.
  EXPECT_GE(large.receiving, 100 * kMiB);
  EXPECT_LE(large.receiving, 110 * kMiB);
  EXPECT_EQ(large.max_message, 64 * kMiB);
  EXPECT_FALSE(large.limited_by_receiving);

  wanted.requests = 8 * kMiB;
  const Shares small = Divide(4 * kGiB, wanted);
  EXPECT_EQ(small.requests, 8 * kMiB);
  EXPECT_EQ(small.receiving, 14 * kMiB);
  EXPECT_EQ(small.max_message, 14 * kMiB / 8 * 7);
  EXPECT_TRUE(small.limited_by_receiving);

  // A flag counts more than the container's limit.
  wanted.requests = 2 * kGiB;
  const Shares over = Divide(kGiB, wanted);
  EXPECT_EQ(over.requests, 2 * kGiB);
  EXPECT_GT(over.most(), kGiB);
  EXPECT_EQ(over.max_message, 64 * kMiB);
}

TEST(SharesTest, WhateverIsWantedItHangsTogether) {
  wire::Random random(wire::TestSeed(20261128));
  const auto any = [&random](int bits) { return random() >> (64 - 1 - random() % bits); };
  for (int i = 0; i < 100'000; ++i) {
    Wanted wanted;
    if (random() % 2 == 0) wanted.requests = any(50);
    if (random() % 2 == 0) wanted.receiving = any(50);
    wanted.max_message = std::max<uint64_t>(1024, any(31));
    wanted.connections = any(20);
    wanted.calls = any(22);
    wanted.threads = any(12);
    wanted.shared_memory = random() % 2 == 0;
    const uint64_t limit = any(44);
    const Shares shares = Divide(limit, wanted);
    SCOPED_TRACE(i);
    ASSERT_EQ(shares.limit, limit);
    ASSERT_GE(shares.idle, kProcessBytes + limit / 16);
    ASSERT_TRUE(wanted.requests == 0 || shares.requests == wanted.requests);
    ASSERT_TRUE(wanted.receiving == 0 ||
                shares.receiving == std::max(wanted.receiving, kLeastReceiving));
    ASSERT_GE(shares.receiving, 2 * shares.window);
    ASSERT_LE(shares.max_message, wanted.max_message);
    // The largest message has its place beside the first windows.
    ASSERT_LE(shares.max_message, shares.receiving - std::max(shares.receiving / 8, shares.window));
    ASSERT_EQ(shares.limited_by_receiving, shares.max_message < wanted.max_message);
    ASSERT_TRUE(std::has_single_bit(shares.window) || shares.window == kMiB + 64 * kKiB);
    ASSERT_GE(shares.window, 64 * kKiB);
    ASSERT_LE(shares.window, kMiB + 64 * kKiB);
  }
}

}  // namespace shares_test
}  // namespace quantd::memory
