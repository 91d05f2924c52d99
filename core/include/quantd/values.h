// Elements as values, for requests written by hand. Converts raw bytes <-> float or int64 values.
#ifndef QUANTD_VALUES_H_
#define QUANTD_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "quantd/data_type.h"

namespace quantd {

// Packs floating-point values. Returns INVALID_ARGUMENT, with `field` and the index, if the
// type is not a floating-point type or can't represent a value. NaN is accepted if the type has
// one.
absl::StatusOr<std::vector<uint8_t>> PackFloats(DataType type, absl::Span<const float> values,
                                                absl::string_view field);

// Packs integers. Returns INVALID_ARGUMENT, with `field` and the index, if the type is not an
// integer type or a value is out of its range.
absl::StatusOr<std::vector<uint8_t>> PackIntegers(DataType type, absl::Span<const int64_t> values,
                                                  absl::string_view field);

// Unpacks the values of elements. REQUIRES: a floating-point type (or FLOAT8E8M0) for the first, an
// integer type for the second; bytes.size() matches.
std::vector<float> UnpackFloats(DataType type, int64_t elements, absl::Span<const uint8_t> bytes);
std::vector<int64_t> UnpackIntegers(DataType type, int64_t elements,
                                    absl::Span<const uint8_t> bytes);

// Packs codes of one byte each, whose upper bits are ignored, to the bits of their type, and back,
// with the signs of integers. REQUIRES: a type of fewer than 8 bits.
void PackCodes(DataType type, const uint8_t* codes, size_t size, uint8_t* packed);
void UnpackCodes(DataType type, const uint8_t* packed, size_t size, uint8_t* codes);

}  // namespace quantd

#endif  // QUANTD_VALUES_H_
