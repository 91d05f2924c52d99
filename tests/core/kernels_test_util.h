// What the tests of the kernels share: the targets to compare with the scalar one, tensors at any
// address with guards around them, difficult values.
#ifndef QUANTD_TESTS_CORE_KERNELS_TEST_UTIL_H_
#define QUANTD_TESTS_CORE_KERNELS_TEST_UTIL_H_

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "quantd/targets.h"

namespace quantd {

inline const KernelTable& ScalarKernels() { return *FindKernels("scalar"); }

// Every table of this machine except the scalar one. If there is none (a build without SIMD), the
// scalar one, so that a test of "every target" is never empty.
inline std::vector<const KernelTable*> TablesUnderTest() {
  std::vector<const KernelTable*> tables;
  for (const std::string& name : SupportedTargets()) {
    if (name != "scalar" || tables.empty()) tables.push_back(FindKernels(name.c_str()));
  }
  return tables;
}

// Bytes that begin `misalignment` bytes after a multiple of 64. If they can end at a page's end
// that way, the next page is not accessible; otherwise they end where an allocation ends, so that a
// sanitizer sees every access beyond.
class Bytes {
 public:
  Bytes(size_t size, size_t misalignment) : size_(size) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t pages = (size + page - 1) / page * page;
    if ((pages - size) % 64 == misalignment % 64) {
      void* const mapped =
          mmap(nullptr, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      EXPECT_NE(mapped, MAP_FAILED);
      owner_ = std::shared_ptr<void>(mapped, [=](void* of) { munmap(of, pages + page); });
      data_ = static_cast<uint8_t*>(mapped) + pages - size;
      EXPECT_EQ(mprotect(data_ + size, page, PROT_NONE), 0);
      return;
    }
    auto storage = std::make_shared<std::vector<uint8_t>>(size + misalignment + 64);
    const size_t address = reinterpret_cast<uintptr_t>(storage->data());
    const size_t begin = (64 - address % 64) % 64 + misalignment;
    auto exact = std::make_shared<std::vector<uint8_t>>(begin + size);
    // A second allocation may be aligned differently: then the unused end is kept.
    const size_t other = reinterpret_cast<uintptr_t>(exact->data());
    if (other % 64 == address % 64) storage = std::move(exact);
    data_ = storage->data() + begin;
    owner_ = std::move(storage);
  }
  Bytes(Bytes&&) = default;
  Bytes& operator=(Bytes&&) = default;
  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

  template <typename T>
  void Set(size_t index, T value) {
    std::memcpy(data() + index * sizeof(T), &value, sizeof(T));
  }
  template <typename T>
  T Get(size_t index) const {
    T value;
    std::memcpy(&value, data() + index * sizeof(T), sizeof(T));
    return value;
  }

 private:
  std::shared_ptr<void> owner_;
  uint8_t* data_ = nullptr;
  size_t size_;
};

// Output bytes with a guard before and behind.
class GuardedBytes {
 public:
  GuardedBytes(size_t size, size_t misalignment) : bytes_(size + 2 * kGuard, misalignment) {
    std::memset(bytes_.data(), kFill, bytes_.size());
  }
  uint8_t* data() { return bytes_.data() + kGuard; }
  size_t size() const { return bytes_.size() - 2 * kGuard; }
  bool GuardsIntact() {
    const auto intact = [](const uint8_t* guard) {
      return std::all_of(guard, guard + kGuard, [](uint8_t byte) { return byte == kFill; });
    };
    return intact(bytes_.data()) && intact(data() + size());
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr uint8_t kFill = 0xA5;
  Bytes bytes_;
};

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A value that is difficult for some kernel at `scale`.
inline float HardValue(std::mt19937& random, float scale) {
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  const float sign = pick(2) == 0 ? 1.0f : -1.0f;
  switch (pick(16)) {
    case 0: {
      constexpr float kSpecial[] = {0.0f,
                                    kInfinity,
                                    std::numeric_limits<float>::quiet_NaN(),
                                    std::numeric_limits<float>::max(),
                                    std::numeric_limits<float>::min(),
                                    std::numeric_limits<float>::denorm_min(),
                                    0x1p31f,
                                    0x1p15f,
                                    65504.0f,
                                    65520.0f};
      return std::copysign(kSpecial[pick(std::size(kSpecial))], sign);
    }
    case 1:  // any bits, NaN with a payload among them
      return std::bit_cast<float>(static_cast<uint32_t>(random()));
    case 2:  // a denormal
      return std::copysign(std::bit_cast<float>(pick(1u << 23)), sign);
    case 3:
    case 4:  // near a tie of integers
    case 5: {
      const float tie = (static_cast<float>(pick(520)) + 0.5f) * scale * sign;
      const uint32_t bits = std::bit_cast<uint32_t>(tie) + pick(5) - 2;
      return std::bit_cast<float>(bits);
    }
    case 6:  // near a tie of 16-bit integers
      return (static_cast<float>(pick(1u << 17)) + 0.5f) * scale * sign;
    case 7:  // near a tie of FLOAT8 and FLOAT4
    case 8: {
      const float steps = static_cast<float>(pick(64)) * 0.5f;
      return std::ldexp(steps, static_cast<int>(pick(40)) - 24) * scale * sign;
    }
    case 9:
      return std::ldexp(static_cast<float>(pick(1u << 24)), static_cast<int>(pick(64)) - 40) *
             scale * sign;
    default:
      return (static_cast<float>(pick(1u << 20)) / 2048.0f) * scale * sign;
  }
}

// A legal scale. `narrow`: within the range of Division::kReciprocal.
inline float HardScale(std::mt19937& random, bool narrow) {
  const float sign = random() % 4 == 0 ? -1.0f : 1.0f;
  const auto mantissa = [&] { return 1.0f + static_cast<float>(random() % (1u << 23)) * 0x1p-23f; };
  switch (random() % 8) {
    case 0:
      return sign * 1.0f;
    case 1:
      return sign * std::ldexp(1.0f, static_cast<int>(random() % 17) - 8);
    case 2: {
      if (narrow) {
        const float edges[] = {0x1p-100f, 0x1p76f, 0x1.fffffep-100f, 0x1.fffffep75f};
        return sign * edges[random() % 4];
      }
      const float edges[] = {0x1p-149f, 0x1p-126f, 0x1.fffffep127f, 0x1p127f};
      return sign * edges[random() % 4];
    }
    case 3: {
      const int range = narrow ? 176 : 250;
      return sign * mantissa() *
             std::ldexp(1.0f, static_cast<int>(random() % range) - range / 2 - (narrow ? 12 : 0));
    }
    default:
      return sign * mantissa() * std::ldexp(1.0f, static_cast<int>(random() % 24) - 16);
  }
}

inline std::mt19937 SeededRandom(uint32_t seed) {
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  return std::mt19937(seed);
}

// Lengths of runs: one for each path of the loops, and lengths that no vector divides.
inline constexpr size_t kRunLengths[] = {1,  2,  3,  4,  5,  7,  8,   12,  15,  16,          17,
                                         24, 31, 32, 33, 48, 64, 100, 128, 200, SIZE_MAX / 2};

}  // namespace quantd

#endif  // QUANTD_TESTS_CORE_KERNELS_TEST_UTIL_H_
