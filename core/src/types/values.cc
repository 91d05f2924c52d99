#include "quantd/values.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "quantd/shape.h"
#include "types/codes.h"
#include "types/small_float.h"

namespace quantd {
namespace {

// The code of a value in a floating-point type, saturated if it is out of range.
uint32_t EncodeValue(DataType type, float value) {
  if (type == DataType::kFloat) return std::bit_cast<uint32_t>(value);
  if (type != DataType::kFloat8E8M0) {
    return EncodeFormat(FormatOf(type), value, false);
  }
  if (std::isnan(value)) return 0xFF;
  return static_cast<uint32_t>(std::clamp(std::ilogb(value), -127, 127) + 127);
}

absl::Status WrongKind(DataType type, absl::string_view field, absl::string_view wanted) {
  return FieldError(field, absl::StrCat(field, " has values of ", wanted,
                                        " type, its data type is ", Name(type)));
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> PackFloats(DataType type, absl::Span<const float> values,
                                                absl::string_view field) {
  const DataTypeInfo* info = FindDataType(static_cast<int>(type));
  if (info == nullptr || info->kind == DataTypeKind::kInteger) {
    return WrongKind(type, field, "floating-point");
  }
  const int64_t count = static_cast<int64_t>(values.size());
  std::vector<uint8_t> packed(ByteSize(type, count));
  for (int64_t i = 0; i < count; ++i) {
    const float value = values[i];
    const uint32_t code = EncodeValue(type, value);
    const float stored = DecodeFloat(type, code);
    if (stored != value && !(std::isnan(stored) && std::isnan(value))) {
      return FieldError(field, absl::StrCat(field, "[", i, "] is ", value,
                                            ", which is not a value of ", Name(type)));
    }
    StoreCode(type, packed.data(), i, code);
  }
  return packed;
}

absl::StatusOr<std::vector<uint8_t>> PackIntegers(DataType type, absl::Span<const int64_t> values,
                                                  absl::string_view field) {
  const DataTypeInfo* info = FindDataType(static_cast<int>(type));
  if (info == nullptr || info->kind != DataTypeKind::kInteger) {
    return WrongKind(type, field, "integer");
  }
  const int64_t count = static_cast<int64_t>(values.size());
  std::vector<uint8_t> packed(ByteSize(type, count));
  for (int64_t i = 0; i < count; ++i) {
    if (values[i] < info->minimum || values[i] > info->maximum) {
      return FieldError(field, absl::StrCat(field, "[", i, "] is ", values[i], ", ", info->name,
                                            " holds ", info->minimum, " to ", info->maximum));
    }
    StoreCode(type, packed.data(), i, static_cast<uint32_t>(values[i]));
  }
  return packed;
}

std::vector<float> UnpackFloats(DataType type, int64_t elements, absl::Span<const uint8_t> bytes) {
  std::vector<float> values(static_cast<size_t>(elements));
  for (int64_t i = 0; i < elements; ++i) {
    values[i] = DecodeFloat(type, LoadCode(type, bytes.data(), i));
  }
  return values;
}

std::vector<int64_t> UnpackIntegers(DataType type, int64_t elements,
                                    absl::Span<const uint8_t> bytes) {
  std::vector<int64_t> values(static_cast<size_t>(elements));
  for (int64_t i = 0; i < elements; ++i) {
    values[i] = DecodeInteger(type, LoadCode(type, bytes.data(), i));
  }
  return values;
}

}  // namespace quantd
