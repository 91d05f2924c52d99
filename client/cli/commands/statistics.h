// Statistics of many values.
#ifndef QUANTD_CLI_COMMANDS_STATISTICS_H_
#define QUANTD_CLI_COMMANDS_STATISTICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "commands/report.h"
#include "files/tensor_file.h"

namespace quantd::cli {

struct Statistics {
  uint64_t finite = 0, nan = 0, infinite = 0;
  // Of the finite values; 0 if there are none.
  double minimum = 0, maximum = 0, mean = 0, deviation = 0;
  std::vector<uint64_t> counts;  // from minimum to maximum in bins of equal width

  // One line per bin: its lower edge, a bar, its count.
  std::string HistogramText() const;
  Json HistogramJson() const;
};

// Calls its argument with all values, in order, many at a time.
using ForEachValues =
    absl::FunctionRef<absl::Status(absl::FunctionRef<void(absl::Span<const double>)> visit)>;

// Iterates over the values twice: first for range and mean, then for deviation and histogram.
// Returns the errors of for_each.
absl::StatusOr<Statistics> Describe(ForEachValues for_each, int64_t bins);

// Visits the values of a stored tensor, in file order. REQUIRES: not of Family::kOpaque.
absl::Status VisitStored(const TensorFile& file, const StoredTensor& tensor,
                         absl::FunctionRef<void(absl::Span<const double>)> visit);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_STATISTICS_H_
