// The memory of messages: its sizes, what is counted, kept and given back, and what happens when
// there is none.
#include "server/memory/buffer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "../loop/loop_testing.h"

namespace quantd::memory {
namespace buffer_test {

constexpr uint64_t kMiB = 1 << 20;

TEST(Pool, SizesAreRoundedUpByAQuarterAtMost) {
  for (size_t bytes = 0; bytes < Pool::kMapped; bytes += 101) {
    EXPECT_EQ(Pool::Footprint(bytes), bytes);
  }
  uint64_t before = 0;
  for (int power = 17; power < 33; ++power) {
    for (const int64_t part : {0, 1, 3, 100, 4096}) {
      for (int quarter = 0; quarter < 4; ++quarter) {
        const uint64_t at = (uint64_t{1} << power) + (uint64_t{1} << (power - 2)) * quarter;
        const uint64_t bytes = at + static_cast<uint64_t>(part);
        const uint64_t footprint = Pool::Footprint(bytes);
        EXPECT_GE(footprint, bytes);
        EXPECT_LE(footprint, bytes + bytes / 4);
        if (part == 0) {
          EXPECT_EQ(footprint, bytes);
          EXPECT_GT(footprint, before);
          before = footprint;
        }
        EXPECT_EQ(Pool::Footprint(footprint), footprint);
      }
    }
  }
}

TEST(Pool, BuffersHoldWhatWasAskedForAndStartAtAHugePage) {
  Pool pool;
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{100}, Pool::kMapped - 1, Pool::kMapped, Pool::kMapped + 1,
        size_t{2 * kMiB - 1}, size_t{2 * kMiB}, size_t{2 * kMiB + 1}, size_t{33 * kMiB + 7}}) {
    const Buffer buffer = pool.Allocate(bytes);
    ASSERT_NE(buffer.data(), nullptr) << bytes;
    EXPECT_GE(buffer.capacity(), bytes);
    EXPECT_EQ(buffer.capacity(), Pool::Footprint(bytes));
    std::memset(buffer.data(), 1, buffer.capacity());
    if (bytes >= 2 * kMiB) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % (2 * kMiB), 0U);
    }
    if (bytes >= Pool::kMapped) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 4096, 0U);
    }
    EXPECT_EQ(pool.used_bytes(), bytes >= Pool::kMapped ? buffer.capacity() : 0);
  }
  EXPECT_EQ(pool.used_bytes(), 0U);
}

TEST(Pool, WhatNobodyHasIsRefusedAndNotCounted) {
  Pool pool;
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, SIZE_MAX / 2 + 2, SIZE_MAX / 8,
                             size_t{1} << 62, size_t{1} << 48, size_t{8} << 30}) {
    const Buffer buffer = pool.Allocate(bytes);
    EXPECT_EQ(buffer.data(), nullptr) << bytes;
    EXPECT_EQ(buffer.capacity(), 0U);
    EXPECT_EQ(pool.used_bytes(), 0U);
  }
}

TEST(Pool, KeepsWhatTrafficNeedsAndGivesBackWhatIsIdle) {
  Pool pool;
  {
    std::vector<Buffer> all;
    for (int i = 0; i < 10; ++i) all.push_back(pool.Allocate(8 * kMiB));
  }
  EXPECT_EQ(pool.used_bytes(), 0U);
  EXPECT_EQ(pool.kept_bytes(), 80 * kMiB);
  uint8_t* again = nullptr;
  for (int second = 0; second < 3; ++second) {
    pool.GiveBack();
    EXPECT_EQ(pool.kept_bytes(), 80 * kMiB) << second;
    const Buffer buffer = pool.Allocate(8 * kMiB);
    if (again != nullptr) {
      EXPECT_EQ(buffer.data(), again);
    }
    again = buffer.data();
  }
  for (int second = 0; second < 5; ++second) pool.GiveBack();
  EXPECT_EQ(pool.kept_bytes(), 16 * kMiB);
}

// Not under sanitizers, which need address space of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
uint64_t AddressSpace() {
  uint64_t pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%lu", &pages) != 1) return 0;
  std::fclose(file);
  return pages * 4096;
}

// Leaves this process only `bytes` of address space.
void LeaveOnly(uint64_t bytes) {
  const rlimit limit = {AddressSpace() + bytes, AddressSpace() + bytes};
  setrlimit(RLIMIT_AS, &limit);
}

// Kept buffers of another size do not cause a lack of memory. In a process of its own.
TEST(PoolDeathTest, WhatIsKeptIsGivenBackBeforeMemoryIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    Pool pool;
    {
      std::vector<Buffer> kept;
      for (int i = 0; i < 8; ++i) kept.push_back(pool.Allocate(16 * kMiB));
    }
    LeaveOnly(32 * kMiB);
    Buffer buffer = pool.Allocate(80 * kMiB);
    if (buffer.data() == nullptr) std::exit(1);
    if (pool.used_bytes() != 80 * kMiB || pool.kept_bytes() != 0) std::exit(2);
    const Buffer none = pool.Allocate(200 * kMiB);
    if (none.data() != nullptr || pool.used_bytes() != 80 * kMiB) std::exit(3);
    buffer = Buffer();
    std::exit(pool.kept_bytes() == 80 * kMiB ? 0 : 4);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

#endif

// Many threads, each with its own model; the pool must report their sum.
TEST(Pool, CountsWhatManyThreadsTake) {
  const uint64_t seed = loop::TestSeed();
  Pool pool;
  pool.Limit(64 * kMiB);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> used{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      loop::Random random(seed + t);
      std::vector<Buffer> held;
      std::vector<uint8_t> marks;
      for (int i = 0; i < 6'000; ++i) {
        if (held.size() < 12 && !loop::OneIn(random, 3)) {
          const size_t bytes = loop::OneIn(random, 2) ? loop::Below(random, 3 * kMiB)
                                                      : loop::Below(random, 2 * Pool::kMapped);
          Buffer buffer = pool.Allocate(bytes);
          ASSERT_NE(buffer.data(), nullptr);
          ASSERT_GE(buffer.capacity(), bytes);
          const auto mark = static_cast<uint8_t>(random());
          if (bytes > 0) buffer.data()[0] = buffer.data()[bytes - 1] = mark;
          if (buffer.capacity() >= Pool::kMapped) used += buffer.capacity();
          if (bytes == 0) continue;
          held.push_back(std::move(buffer));
          marks.push_back(mark);
        } else if (!held.empty()) {
          const size_t which = loop::Below(random, held.size());
          ASSERT_EQ(held[which].data()[0], marks[which]);
          if (held[which].capacity() >= Pool::kMapped) used -= held[which].capacity();
          held[which] = std::move(held.back());
          marks[which] = marks.back();
          held.pop_back();
          marks.pop_back();
        }
      }
      for (const Buffer& buffer : held) {
        if (buffer.capacity() >= Pool::kMapped) used -= buffer.capacity();
      }
    });
  }
  std::thread giver([&] {
    while (!stop) {
      pool.GiveBack();
      const uint64_t kept = pool.kept_bytes();
      EXPECT_LE(kept, 256 * kMiB);
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  giver.join();
  EXPECT_EQ(used, 0U);
  EXPECT_EQ(pool.used_bytes(), 0U);
  for (int i = 0; i < 6; ++i) pool.GiveBack();
  EXPECT_LE(pool.kept_bytes(), 16 * kMiB);
}

}  // namespace buffer_test
}  // namespace quantd::memory
