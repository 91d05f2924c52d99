// What calibration keeps of the channels of a quantity: enough for every method, and no more than
// grows with the number of channels.
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

  // Most bytes of so many.
  static uint64_t Bytes(uint64_t size, bool has_bins) {
    return size * (kPlainBytes + (has_bins ? sizeof(Bins) + kMallocBytes : 0));
  }

  size_t size() const { return finite.size(); }
  bool has_bins() const { return has_bins_; }
  // The exact range, without a negative zero; 0 of a channel without values.
  float LowOf(size_t channel) const { return finite[channel] == 0 ? 0 : low[channel] + 0.0f; }
  float HighOf(size_t channel) const { return finite[channel] == 0 ? 0 : high[channel] + 0.0f; }
  // The bins of a channel, made when it first has some. REQUIRES: has_bins().
  Bins& BinsOf(size_t channel);
  // Null: no values.
  const Bins* FindBins(size_t channel) const { return bins_[channel].get(); }
  // Before the values between low and high of a channel are counted.
  Bins& RaiseTop(size_t channel);

  // REQUIRES: as many channels, and bins where this one has some.
  void Merge(const Channels& other);

  // One entry a channel.
  std::vector<uint64_t> finite;      // values
  std::vector<uint64_t> non_finite;  // NaN and infinities
  std::vector<float> low;            // +Inf without values; the sign of a 0 is any
  std::vector<float> high;           // -Inf

 private:
  static constexpr uint64_t kPlainBytes = 2 * sizeof(uint64_t) + 2 * sizeof(float) + sizeof(void*);
  static constexpr uint64_t kMallocBytes = 16;

  bool has_bins_ = false;
  std::vector<std::unique_ptr<Bins>> bins_;
};

}  // namespace quantd::calibrate

#endif  // QUANTD_SRC_CALIBRATE_CHANNELS_H_
