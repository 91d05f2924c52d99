// Shapes, and their sizes computed without overflow.
#ifndef QUANTD_SHAPE_H_
#define QUANTD_SHAPE_H_

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "quantd/data_type.h"

namespace quantd {

// The length of each dimension, outermost first. Empty: 0-D, one element.
using Shape = absl::InlinedVector<int64_t, 6>;

// The maximum number of dimensions. It is quantd's own limit, so that no request costs more than
// its bytes.
inline constexpr int kMaxRank = 64;

// The number of elements. Returns INVALID_ARGUMENT, with `field`, if a dimension is negative, the
// rank is over kMaxRank, or the product is 2^62 or more. The product skips zeros, so [0, 2^62,
// 2^62] is an error, too.
absl::StatusOr<int64_t> ElementCount(absl::Span<const int64_t> shape, absl::string_view field);

// The bytes of `elements` packed elements of `type`. REQUIRES: type is known, 0 <= elements < 2^62
// (the result fits uint64_t).
uint64_t ByteSize(DataType type, int64_t elements);

// "[2, 3]", for messages; for more than 8 dimensions the first 8 and the number of dimensions.
std::string ShapeString(absl::Span<const int64_t> shape);

}  // namespace quantd

#endif  // QUANTD_SHAPE_H_
