// Checks the tensors of a request: first types, then shapes, then the given bytes.
// Nothing is allocated for a tensor before the size of its bytes is known to match its
// shape.
#ifndef QUANTD_SRC_PLAN_OPERANDS_H_
#define QUANTD_SRC_PLAN_OPERANDS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plan/granularity.h"
#include "quantd/parameters.h"
#include "quantd/plan.h"

namespace quantd {

// The output types of Quantize and DynamicQuantize.
absl::Span<const DataType> QuantizedTypes();

// Fails unless `type` is one of `allowed`; `wanted` begins the message, as in "Quantize takes".
absl::Status CheckType(DataType type, absl::string_view field, absl::string_view wanted,
                       absl::Span<const DataType> allowed);

// The number of elements of a tensor. Fails unless the size of its bytes matches.
absl::StatusOr<int64_t> CheckTensor(const TensorView& tensor, absl::string_view field);

// Fails unless the zero point has the scale's shape ([] and [1] are the same).
absl::Status CheckZeroPointShape(const Shape& zero_point, const Shape& scale);

// Fills the common part of a plan. `blocks` are those of x.
absl::Status FillBase(const TensorView& x, DataType output_type, const Blocks& blocks,
                      PlanBase& plan);

// Whether every byte is 0, so that every element is 0 in all types of zero points.
bool AllZero(absl::Span<const uint8_t> bytes);

// FLOAT8 outputs and inputs accept only zero points of 0. Fails with the index of another
// one.
absl::Status CheckZeroBytes(const TensorView& zero_point, int64_t elements);

}  // namespace quantd

#endif  // QUANTD_SRC_PLAN_OPERANDS_H_
