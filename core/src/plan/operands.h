// The tensors of a request, checked and read: types first, then shapes, then the bytes that
// arrived. Nothing is allocated before the bytes of a tensor are known to be as many as its shape
// says.
#ifndef QUANTD_PLAN_OPERANDS_H_
#define QUANTD_PLAN_OPERANDS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plan/blocks.h"
#include "quantd/parameters.h"
#include "quantd/plan.h"

namespace quantd {

// The output types of Quantize and DynamicQuantize.
absl::Span<const DataType> QuantizedTypes();

// Fails unless `type` is one of `allowed`; `wanted` says who asks, as in "Quantize takes".
absl::Status CheckType(DataType type, absl::string_view field, absl::string_view wanted,
                       absl::Span<const DataType> allowed);

// The number of elements of a tensor whose bytes are as many as that takes.
absl::StatusOr<int64_t> CheckTensor(const TensorView& tensor, absl::string_view field);

// Fails unless the zero point has the scale's shape ([] and [1] are the same).
absl::Status CheckZeroPointShape(const Shape& zero_point, const Shape& scale);

// Fills what all plans have. `blocks` are those of x.
absl::Status FillBase(const TensorView& x, DataType output_type, const Blocks& blocks,
                      PlanBase& plan);

// The elements of a tensor as FLOAT, or as stored (small types zero-extended), or as integers.
// REQUIRES: CheckTensor passed with `elements`; an integer type for ReadIntegers.
std::vector<float> ReadFloats(const TensorView& tensor, int64_t elements);
std::vector<int32_t> ReadCodes(const TensorView& tensor, int64_t elements);
std::vector<int32_t> ReadIntegers(const TensorView& tensor, int64_t elements);

// As std::all_of, without a way out of the loop, which would keep compilers from vectorising it.
template <typename Value, typename Predicate>
bool All(const std::vector<Value>& values, Predicate predicate) {
  uint32_t failures = 0;
  for (const Value value : values) failures |= !predicate(value);
  return failures == 0;
}

// FLOAT8 outputs and inputs take no zero point but an all-zero one. Fails naming the index of
// another one.
absl::Status CheckZeroBytes(const TensorView& zero_point, int64_t elements);

}  // namespace quantd

#endif  // QUANTD_PLAN_OPERANDS_H_
