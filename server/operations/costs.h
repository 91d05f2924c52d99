// How long requests take to compute, learned from those that came before: so that short work runs
// where it was read and long work leaves its loop. In time and not in bytes, because a report of
// the error, values in place of bytes, or a scale for every other element cost many times a plain
// byte.
#ifndef QUANTD_SERVER_OPERATIONS_COSTS_H_
#define QUANTD_SERVER_OPERATIONS_COSTS_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "quantd/calibration.h"
#include "quantd/data_type.h"
#include "server/wire/request.h"

namespace quantd::operations {

// A kind of request: those of one kind take as long as they have bytes.
struct CostKind {
  size_t index = 0;
  uint64_t bytes = 0;  // of x and y
};
CostKind KindOf(const wire::Request& request);
// Of a calibration's x. `values`: it came as such.
CostKind KindOf(const TensorView& x, const CalibrationOptions& options, bool values);

// Safe from any thread; a reading is a little behind.
class Costs {
 public:
  Costs();

  // On one core.
  std::chrono::nanoseconds Estimate(const CostKind& kind) const;
  // A request took so long, of all its cores together. Follows the fastest: others were disturbed.
  void Learn(const CostKind& kind, std::chrono::nanoseconds took);

 private:
  static constexpr size_t kKinds = wire::kOperations * kDataTypes.size() * kDataTypes.size() * 8;
  // Negative as long as it is assumed, and not learned.
  std::array<std::atomic<float>, kKinds> nanoseconds_a_byte_;
};

}  // namespace quantd::operations

#endif  // QUANTD_SERVER_OPERATIONS_COSTS_H_
