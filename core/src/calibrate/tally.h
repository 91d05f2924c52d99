// Counts many values of one channel before it is known which bins are kept apart: one counter for
// each upper half of a FLOAT (rules/bins.h), so that finding the counter of a value is one load.
#ifndef QUANTD_SRC_CALIBRATE_TALLY_H_
#define QUANTD_SRC_CALIBRATE_TALLY_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "calibrate/channels.h"
#include "rules/bins.h"

namespace quantd::calibrate {

class Tally {
 public:
  // Twice 65,536 counters: neighbouring values use different ones, because a counter can't be read
  // for 7 cycles after it was written. Only the pages of values that occur are touched: a few per
  // octave, or all of them for a hostile x.
  static constexpr uint64_t kBytes = 2 * 65536 * sizeof(uint32_t);
  // The most values of one tally, because counters have 32 bits.
  static constexpr int64_t kMost = int64_t{1} << 31;

  // The counters are null if the system is out of memory.
  Tally() : counts_(static_cast<uint32_t*>(std::calloc(kBytes, 1))) {}
  explicit operator bool() const { return counts_ != nullptr; }

  // Counts `size` floats, finite or not. `next`: a hint, the address that is read afterwards, which
  // may be any; it is prefetched, since counting takes as long as reading.
  void Add(const uint8_t* x, size_t size, const uint8_t* next) {
    uint32_t* const even = counts_.get();
    uint32_t* const odd = even + 65536;
    constexpr size_t kLine = 64 / sizeof(float);
    size_t i = 0;
    for (; i + kLine <= size; i += kLine) {
      __builtin_prefetch(next + i * sizeof(float));
#pragma GCC unroll 8
      for (size_t k = i; k < i + kLine; k += 2) {
        ++even[UpperHalf(x, k)];
        ++odd[UpperHalf(x, k + 1)];
      }
    }
    for (; i < size; ++i) ++even[UpperHalf(x, i)];
  }

  // Adds all counts to bins whose top is at least as large as all counted values. `finite`: the
  // number of finite values. REQUIRES: at most kMost values.
  void AddTo(uint64_t finite, Bins& bins) const {
    uint64_t apart = 0;
    for (int m = bins.floor() + 1; m <= bins.top(); ++m) {
      for (const int sign : {0, 0x8000}) {
        const auto half = static_cast<size_t>(m | sign);
        const uint64_t count = uint64_t{counts_[half]} + counts_[half + 65536];
        if (count == 0) continue;
        apart += count;
        bins.Add(sign == 0 ? m : -m, count);
      }
    }
    bins.Add(0, finite - apart);
  }

 private:
  struct Free {
    void operator()(uint32_t* counts) const { std::free(counts); }
  };

  static size_t UpperHalf(const uint8_t* x, size_t index) {
    static_assert(std::endian::native == std::endian::little);
    uint16_t half;
    std::memcpy(&half, x + index * sizeof(float) + 2, sizeof(half));
    return half;
  }

  std::unique_ptr<uint32_t[], Free> counts_;
};

}  // namespace quantd::calibrate

#endif  // QUANTD_SRC_CALIBRATE_TALLY_H_
