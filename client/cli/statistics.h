// What the values of a stored tensor are like.
#ifndef QUANTD_CLI_STATISTICS_H_
#define QUANTD_CLI_STATISTICS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "histogram.h"
#include "tensor_file.h"

namespace quantd::cli {

struct Statistics {
  uint64_t finite = 0, nan = 0, infinite = 0;
  // Of the finite values; 0 when there are none.
  double minimum = 0, maximum = 0, mean = 0, deviation = 0;
};

// Visits the values in the order of the file, many at a time. False for a type without values
// (complex, void).
bool ForEachValues(const TensorFile& file, const StoredTensor& tensor,
                   absl::FunctionRef<void(absl::Span<const double>)> visit);

// Reads the tensor twice: for range and mean, then for deviation and histogram.
Statistics Describe(const TensorFile& file, const StoredTensor& tensor, int bins,
                    Histogram* histogram);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_STATISTICS_H_
