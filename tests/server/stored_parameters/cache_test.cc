#include "server/stored_parameters/cache.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace quantd::stored_parameters {
namespace {

std::unique_ptr<wire::StoredSet> MakeSet(const std::string& reference, size_t bytes) {
  auto set = std::make_unique<wire::StoredSet>();
  set->reference = reference;
  set->bytes = std::string(bytes, 'x');
  return set;
}

TEST(Cache, TheOnesUsedLastStay) {
  Cache cache(100 << 10, 1 << 20);
  for (const char* name : {"a", "b", "c"}) cache.Add(MakeSet(name, 28 << 10));
  EXPECT_NE(cache.Find("a"), nullptr);
  cache.Add(MakeSet("d", 28 << 10));
  EXPECT_EQ(cache.Find("b"), nullptr);
  for (const char* name : {"a", "c", "d"}) EXPECT_NE(cache.Find(name), nullptr) << name;
  EXPECT_LE(cache.kept_bytes(), 100U << 10);
}

TEST(Cache, OneThatIsTooLargeIsUsedButNotKept) {
  Cache cache(100 << 10, 1 << 20);
  cache.Add(MakeSet("a", 1000));
  SetPointer large = cache.Add(MakeSet("large", 200 << 10));
  EXPECT_EQ(large->bytes.size(), 200U << 10);
  EXPECT_EQ(cache.Find("large"), nullptr);
  EXPECT_NE(cache.Find("a"), nullptr);
  EXPECT_GT(cache.live_bytes(), 200U << 10);
  large = nullptr;
  EXPECT_EQ(cache.live_bytes(), cache.kept_bytes());
}

TEST(Cache, TheSameIsNotKeptTwice) {
  Cache cache(100 << 10, 1 << 20);
  const SetPointer first = cache.Add(MakeSet("a", 1000));
  EXPECT_EQ(cache.Add(MakeSet("a", 1000)), first);
  EXPECT_EQ(cache.live_bytes(), cache.kept_bytes());
}

TEST(Cache, RoomIsMadeOfWhatNobodyUses) {
  Cache cache(100 << 10, 200 << 10);
  std::vector<SetPointer> used;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(cache.MakeRoom(28 << 10, 0));
    used.push_back(cache.Add(MakeSet(absl::StrCat(i), 28 << 10)));
  }
  // Two of the five are in use, but no longer in the cache: 160 KiB live.
  EXPECT_FALSE(cache.MakeRoom(60 << 10, 0));
  used.clear();
  EXPECT_TRUE(cache.MakeRoom(60 << 10, 0));
  EXPECT_TRUE(cache.MakeRoom(150 << 10, 50 << 10));
  EXPECT_FALSE(cache.MakeRoom(150 << 10, 51 << 10));
  EXPECT_EQ(cache.live_bytes(), 0U);
}

TEST(Cache, ASetOutlivesIt) {
  SetPointer set;
  {
    Cache cache(1 << 20, 1 << 20);
    set = cache.Add(MakeSet("a", 1000));
  }
  EXPECT_EQ(set->bytes.size(), 1000U);
}

TEST(Cache, ManyThreads) {
  Cache cache(100 << 10, 1 << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&cache, t] {
      std::minstd_rand random(static_cast<unsigned>(t + 1));
      for (int i = 0; i < 3000; ++i) {
        const std::string name = absl::StrCat(random() % 40);
        SetPointer set = cache.Find(name);
        if (set == nullptr && cache.MakeRoom(8 << 10, 0)) {
          set = cache.Add(MakeSet(name, 8 << 10));
        }
        if (set != nullptr) {
          EXPECT_EQ(set->reference, name);
        }
        EXPECT_LE(cache.kept_bytes(), 100U << 10);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.live_bytes(), cache.kept_bytes());
}

}  // namespace
}  // namespace quantd::stored_parameters
