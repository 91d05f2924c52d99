// The data that calibration keeps for each channel of a quantity: enough for every method, and its
// size grows only with the number of channels.
#ifndef QUANTD_SRC_CALIBRATE_CHANNELS_H_
#define QUANTD_SRC_CALIBRATE_CHANNELS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "rules/bins.h"

namespace quantd::calibrate {

// The counts of a channel's bins (rules/bins.h).
class Bins {
 public:
  // The largest bin that can be counted, and F.
  int top() const { return top_; }
  int floor() const { return rules::Floor(top_); }

  // Call this before counting a value whose bin is larger than all earlier ones. Bins that are
  // not above F are added to the zero bin, each once, in any order of values.
  void RaiseTop(int top) {
    if (top <= top_) return;
    const int last = std::min(rules::Floor(top), top_);
    for (int m = floor() + 1; m <= last; ++m) {
      for (const bool negative : {false, true}) {
        uint64_t& count = counts_[rules::Slot(m, negative)];
        counts_[0] += count;
        count = 0;
      }
    }
    top_ = top;
  }

  // Counts `size` values. `next`: a hint, the address that is read afterwards, which may be any;
  // it is prefetched, since counting takes as long as reading. REQUIRES: the slots are for this
  // floor.
  void Count(const uint16_t* slots, size_t size, const uint8_t* next) {
    constexpr size_t kLine = 64 / sizeof(float);
    size_t i = 0;
    for (; i + kLine <= size; i += kLine) {
      __builtin_prefetch(next + i * sizeof(float));
      for (size_t k = i; k < i + kLine; k += 4) {
        uint64_t four;  // loads four slots at once
        std::memcpy(&four, slots + k, sizeof(four));
        ++counts_[four & 0xFFFF];
        ++counts_[four >> 16 & 0xFFFF];
        ++counts_[four >> 32 & 0xFFFF];
        ++counts_[four >> 48];
      }
    }
    for (; i < size; ++i) ++counts_[slots[i]];
  }
  void CountOne(uint16_t slot) { ++counts_[slot]; }

  // id: -m, 0 for the zero bin, or m. REQUIRES: |id| <= top().
  void Add(int id, uint64_t count) { counts_[SlotOfId(id)] += count; }
  uint64_t count(int id) const { return counts_[SlotOfId(id)]; }

  void Merge(const Bins& other) {
    RaiseTop(other.top_);
    other.ForEach([this](int id, uint64_t count) { Add(id, count); });
  }

  // Calls body(id, count) for all bins that are not empty, in ascending order.
  template <typename Body>
  void ForEach(Body&& body) const {
    for (int m = top_; m > floor(); --m) {
      if (const uint64_t found = counts_[rules::Slot(m, true)]; found > 0) body(-m, found);
    }
    if (counts_[0] > 0) body(0, counts_[0]);
    for (int m = floor() + 1; m <= top_; ++m) {
      if (const uint64_t found = counts_[rules::Slot(m, false)]; found > 0) body(m, found);
    }
  }

 private:
  size_t SlotOfId(int id) const {
    const int m = std::abs(id);
    return m <= floor() ? 0 : rules::Slot(m, id < 0);
  }

  int top_ = 0;
  // The last one counts non-finite values and is never read.
  std::array<uint64_t, rules::kSlots + 1> counts_ = {};
};

class Channels {
 public:
  Channels() = default;
  Channels(size_t size, bool has_bins);

  // The most bytes of this number of channels.
  static uint64_t Bytes(uint64_t size, bool has_bins) {
    return size * (kPlainBytes + (has_bins ? sizeof(Bins) + kMallocBytes : 0));
  }

  size_t size() const { return finite.size(); }
  bool has_bins() const { return has_bins_; }
  // The exact range, without a negative zero; 0 for a channel without values.
  float LowOf(size_t channel) const { return finite[channel] == 0 ? 0 : low[channel] + 0.0f; }
  float HighOf(size_t channel) const { return finite[channel] == 0 ? 0 : high[channel] + 0.0f; }
  // The bins of a channel; allocated on first use. REQUIRES: has_bins().
  Bins& BinsOf(size_t channel);
  // Null: the channel has no values.
  const Bins* FindBins(size_t channel) const { return bins_[channel].get(); }
  // Call this before counting values between low and high of a channel.
  Bins& RaiseTop(size_t channel);

  // REQUIRES: the same number of channels, and bins if this object has bins.
  void Merge(const Channels& other);

  // One entry per channel.
  std::vector<uint64_t> finite;      // values
  std::vector<uint64_t> non_finite;  // NaN and infinities
  std::vector<float> low;            // +Inf without values; the sign of a 0 is unspecified
  std::vector<float> high;           // -Inf without values

 private:
  static constexpr uint64_t kPlainBytes = 2 * sizeof(uint64_t) + 2 * sizeof(float) + sizeof(void*);
  static constexpr uint64_t kMallocBytes = 16;

  bool has_bins_ = false;
  std::vector<std::unique_ptr<Bins>> bins_;
};

}  // namespace quantd::calibrate

#endif  // QUANTD_SRC_CALIBRATE_CHANNELS_H_
