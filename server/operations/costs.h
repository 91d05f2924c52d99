// Learns from past requests how long a request takes to compute, so that short work runs where it
// was read and long work leaves its loop. Costs are in time, not in bytes, because an error report,
// values instead of bytes, or a scale for every other element cost many times as much as a plain
// byte.
#ifndef QUANTD_SERVER_OPERATIONS_COSTS_H_
#define QUANTD_SERVER_OPERATIONS_COSTS_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "quantd/data_type.h"
#include "server/wire/request.h"

namespace quantd::operations {

// A kind of request. The time of requests of one kind is proportional to their bytes.
struct CostKind {
  size_t index = 0;
  uint64_t bytes = 0;  // of x and y
};
CostKind KindOf(const wire::Request& request);

// Thread-safe; a reading may be slightly out of date.
class Costs {
 public:
  Costs();

  // The time on one core.
  std::chrono::nanoseconds Estimate(const CostKind& kind) const;
  // Learns the time that a request took, summed over its cores. Follows the fastest times, because
  // slower ones were disturbed.
  void Learn(const CostKind& kind, std::chrono::nanoseconds took);

 private:
  static constexpr size_t kKinds = wire::kOperations * kDataTypes.size() * kDataTypes.size() * 8;
  // Negative while the value is an assumption that has not been learned yet.
  std::array<std::atomic<float>, kKinds> nanoseconds_a_byte_;
};

}  // namespace quantd::operations

#endif  // QUANTD_SERVER_OPERATIONS_COSTS_H_
