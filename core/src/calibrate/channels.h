// The data that calibration keeps for each channel of a quantity: enough for every method, and its
// size grows only with the number of channels.
#ifndef QUANTD_SRC_CALIBRATE_CHANNELS_H_
#define QUANTD_SRC_CALIBRATE_CHANNELS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "calibrate/bin_counts.h"

namespace quantd::calibrate {

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
