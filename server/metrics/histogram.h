// Counters and histograms of seconds. Writing takes one or two relaxed atomic additions and no lock
// (prometheus-cpp's Histogram::Observe takes a mutex). Thread-safe.
#ifndef QUANTD_SERVER_METRICS_HISTOGRAM_H_
#define QUANTD_SERVER_METRICS_HISTOGRAM_H_

#include <prometheus/client_metric.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace quantd::metrics {

class Counter {
 public:
  void Add(uint64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// 10 us to 100 s in steps of 1, 2.5, 5.
class Histogram {
 public:
  using Duration = std::chrono::nanoseconds;

  void Observe(Duration duration) {
    const int64_t nanoseconds = std::max<int64_t>(duration.count(), 0);
    const auto* bound = std::lower_bound(kBounds.begin(), kBounds.end(), nanoseconds);
    counts_[static_cast<size_t>(bound - kBounds.begin())].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(nanoseconds, std::memory_order_relaxed);
  }

  // A reading during writes may be slightly out of date, but is consistent: the count is the sum of
  // the buckets.
  prometheus::ClientMetric::Histogram Collect() const {
    prometheus::ClientMetric::Histogram out;
    for (size_t i = 0; i < counts_.size(); ++i) {
      out.sample_count += counts_[i].load(std::memory_order_relaxed);
      prometheus::ClientMetric::Bucket bucket;
      bucket.cumulative_count = out.sample_count;
      bucket.upper_bound =
          i < kBounds.size() ? kBounds[i] / 1e9 : std::numeric_limits<double>::infinity();
      out.bucket.push_back(bucket);
    }
    out.sample_sum = sum_.load(std::memory_order_relaxed) / 1e9;
    return out;
  }

 private:
  static constexpr std::array<int64_t, 22> kBounds = [] {
    std::array<int64_t, 22> bounds{};
    int64_t decade = 10'000;
    for (size_t i = 0; i < bounds.size(); ++i) {
      constexpr int64_t kTenths[] = {10, 25, 50};
      bounds[i] = decade / 10 * kTenths[i % 3];
      if (i % 3 == 2) decade *= 10;
    }
    return bounds;
  }();

  std::array<std::atomic<uint64_t>, kBounds.size() + 1> counts_{};
  std::atomic<int64_t> sum_{0};
};

}  // namespace quantd::metrics

#endif  // QUANTD_SERVER_METRICS_HISTOGRAM_H_
