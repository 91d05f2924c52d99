// Elements as values: for requests written by hand. Raw bytes <-> float or int64 values.
#ifndef QUANTD_VALUES_H_
#define QUANTD_VALUES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "quantd/data_type.h"

namespace quantd {

// Packed bytes of floating-point values. INVALID_ARGUMENT, naming `field` and the index, when the
// type is not a floating-point one or a value is not representable in it (a NaN is, wherever the
// type has one).
absl::StatusOr<std::vector<uint8_t>> PackFloats(DataType type, absl::Span<const float> values,
                                                absl::string_view field);

// Packed bytes of integers. INVALID_ARGUMENT, naming `field` and the index, when the type is not an
// integer one or a value is out of its range.
absl::StatusOr<std::vector<uint8_t>> PackIntegers(DataType type, absl::Span<const int64_t> values,
                                                  absl::string_view field);

// The values of packed elements. REQUIRES: a floating-point (or FLOAT8E8M0) type; an integer type;
// bytes.size() right.
std::vector<float> UnpackFloats(DataType type, int64_t elements, absl::Span<const uint8_t> bytes);
std::vector<int64_t> UnpackIntegers(DataType type, int64_t elements,
                                    absl::Span<const uint8_t> bytes);

}  // namespace quantd

#endif  // QUANTD_VALUES_H_
