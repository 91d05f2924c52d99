// Threads that find, read and write regions while others replace, truncate, grow and remove the
// files, and one sweeps.
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "regions_testing.h"
#include "server/regions/regions.h"

namespace quantd::regions {
namespace {

constexpr int kNames = 6;
constexpr uint64_t kMost = 64 << 10;

TEST(RegionsStressTest, FilesChangeUnderThreads) {
  const Folder folder;
  const std::unique_ptr<Regions> regions =
      *Regions::Open(folder.path(), {.mappings = 4, .idle = {}});
  std::atomic<bool> over{false};
  std::atomic<uint64_t> found{0}, refused{0}, damaged{0};
  std::vector<std::thread> threads;
  for (uint32_t seed = 0; seed < 3; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      while (!over) {
        const uint64_t size = random() % kMost;
        const auto access = random() % 2 == 0 ? Access::kRead : Access::kWrite;
        const absl::StatusOr<SharedSpan> place =
            regions->Find("x", absl::StrCat("r", random() % kNames), random() % 100, size, access);
        if (!place.ok()) {
          ++refused;
          continue;
        }
        ++found;
        uint64_t sum = 0;
        for (uint8_t& one : place->bytes()) {
          // Other threads use the same file.
          const std::atomic_ref<uint8_t> byte(one);
          if (access == Access::kWrite) {
            byte.store(static_cast<uint8_t>(seed), std::memory_order_relaxed);
          }
          sum += byte.load(std::memory_order_relaxed);
        }
        damaged += place->damaged();
        EXPECT_LE(sum, 255 * size);
      }
    });
  }
  threads.emplace_back([&] {
    while (!over) {
      regions->Sweep();
      std::this_thread::yield();
    }
  });
  std::mt19937 random(99);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < end) {
    const std::string name = absl::StrCat("r", random() % kNames);
    const std::string path = folder / name;
    switch (random() % 4) {
      case 0:
        folder.Make(name + ".new", random() % kMost);
        std::filesystem::rename(path + ".new", path);
        break;
      case 1:
        unlink(path.c_str());
        break;
      default: {
        const int file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
        const auto size = static_cast<off_t>(random() % kMost + 1);
        if (random() % 2 == 0) {
          EXPECT_EQ(ftruncate(file, size), 0);
        }
        EXPECT_EQ(posix_fallocate(file, 0, size), 0);
        close(file);
      }
    }
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("%llu found, %llu of them damaged, %llu refused\n",
              static_cast<unsigned long long>(found), static_cast<unsigned long long>(damaged),
              static_cast<unsigned long long>(refused));
  EXPECT_GT(found, 0);
  regions->Sweep();
  EXPECT_EQ(regions->mappings(), 0);
  EXPECT_EQ(regions->mapped_bytes(), 0);
}

}  // namespace
}  // namespace quantd::regions
