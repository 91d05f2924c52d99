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

// Length of each dimension, outermost first. Empty: 0-D, one element.
using Shape = absl::InlinedVector<int64_t, 6>;

// Most dimensions that a tensor may have. A limit of quantd, so that no request costs more than its
// bytes.
inline constexpr int kMaxRank = 64;

// Number of elements. INVALID_ARGUMENT, naming `field`, when a dimension is negative, the rank is
// over kMaxRank or the product (zeros left out, so that [0, 2^62, 2^62] is refused too) is 2^62
// or more.
absl::StatusOr<int64_t> ElementCount(absl::Span<const int64_t> shape, absl::string_view field);

// Bytes of `elements` packed elements of `type`. REQUIRES: type known, 0 <= elements < 2^62 (the
// result fits uint64_t).
uint64_t ByteSize(DataType type, int64_t elements);

// "[2, 3]", for messages; of more than 8 dimensions the first 8 and their number.
std::string ShapeString(absl::Span<const int64_t> shape);

}  // namespace quantd

#endif  // QUANTD_SHAPE_H_
