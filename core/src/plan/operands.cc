#include "plan/operands.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "quantd/shape.h"
#include "types/codes.h"

namespace quantd {
namespace {

constexpr DataType kQuantizedTypes[] = {
    DataType::kUint8,          DataType::kInt8,       DataType::kUint16,
    DataType::kInt16,          DataType::kUint4,      DataType::kInt4,
    DataType::kUint2,          DataType::kInt2,       DataType::kFloat8E4M3Fn,
    DataType::kFloat8E4M3Fnuz, DataType::kFloat8E5M2, DataType::kFloat8E5M2Fnuz,
    DataType::kFloat4E2M1};

static_assert(std::endian::native == std::endian::little);
template <typename Code>
Code Load(const uint8_t* bytes, size_t index) {
  Code code;
  std::memcpy(&code, bytes + index * sizeof(Code), sizeof(Code));
  return code;
}

// Calls each(i, code) for the elements of a tensor. A scale every 32 elements is a lot of scales,
// so the type is not looked at in the loop, which compilers vectorise where `each` allows it.
template <typename Each>
void ForEachCode(const TensorView& tensor, int64_t elements, Each each) {
  std::vector<uint8_t> copy;
  const uint8_t* bytes = nullptr;
  if (tensor.bytes.chunk_count() == 1) {
    bytes = tensor.bytes.chunk(0).data();
  } else {
    copy.resize(tensor.bytes.size());
    tensor.bytes.CopyTo(0, absl::MakeSpan(copy));
    bytes = copy.data();
  }
  const auto size = static_cast<size_t>(elements);
  const auto walk = [&](auto load) {
    for (size_t i = 0; i < size; ++i) each(i, load(i));
  };
  // A byte at a time, then what there is of the last one.
  const auto walk_packed = [&](auto width) {
    constexpr size_t kBits = decltype(width)::value;
    constexpr size_t kCodes = 8 / kBits;
    const auto code = [bytes](size_t byte, size_t j) {
      return uint32_t{bytes[byte]} >> (j * kBits) & ((1u << kBits) - 1);
    };
    for (size_t byte = 0; byte < size / kCodes; ++byte) {
      for (size_t j = 0; j < kCodes; ++j) each(byte * kCodes + j, code(byte, j));
    }
    for (size_t j = 0; j < size % kCodes; ++j) {
      each(size / kCodes * kCodes + j, code(size / kCodes, j));
    }
  };
  switch (Info(tensor.data_type).bits) {
    case 2:
      return walk_packed(std::integral_constant<size_t, 2>());
    case 4:
      return walk_packed(std::integral_constant<size_t, 4>());
    case 8:
      return walk([bytes](size_t i) { return uint32_t{bytes[i]}; });
    case 16:
      return walk([bytes](size_t i) { return uint32_t{Load<uint16_t>(bytes, i)}; });
    default:
      return walk([bytes](size_t i) { return Load<uint32_t>(bytes, i); });
  }
}

// Calls each(i, value) for the elements of a tensor of an integer type.
template <typename Each>
void ForEachInteger(const TensorView& tensor, int64_t elements, Each each) {
  const int unused = 32 - Info(tensor.data_type).bits;
  if (Info(tensor.data_type).minimum < 0) {
    ForEachCode(tensor, elements, [each, unused](size_t i, uint32_t code) {
      each(i, static_cast<int32_t>(code << unused) >> unused);
    });
  } else {
    ForEachCode(tensor, elements,
                [each](size_t i, uint32_t code) { each(i, static_cast<int32_t>(code)); });
  }
}

// As DecodeFloat16, in the operations that vectors have.
float Float16Value(uint32_t code) {
  const uint32_t magnitude = code & 0x7FFF;
  const float finite = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  const uint32_t special = magnitude > 0x7C00 ? 0x7FC00000u : 0x7F800000u;
  const uint32_t bits = magnitude < 0x7C00 ? std::bit_cast<uint32_t>(finite) : special;
  return std::bit_cast<float>(bits | (code & 0x8000) << 16);
}

// As DecodeBfloat16, with every NaN the quiet one of its sign.
float Bfloat16Value(uint32_t code) {
  const uint32_t sign = (code & 0x8000) << 16;
  return std::bit_cast<float>((code & 0x7FFF) > 0x7F80 ? 0x7FC00000u | sign : code << 16);
}

// A shape with [1] for [].
Shape OneElementShape(const Shape& shape) { return shape.empty() ? Shape{1} : shape; }

}  // namespace

absl::Span<const DataType> QuantizedTypes() { return kQuantizedTypes; }

absl::Status CheckType(DataType type, absl::string_view field, absl::string_view wanted,
                       absl::Span<const DataType> allowed) {
  if (std::find(allowed.begin(), allowed.end(), type) != allowed.end()) return absl::OkStatus();
  std::string names;
  for (DataType one : allowed) absl::StrAppend(&names, names.empty() ? "" : ", ", Name(one));
  if (type == DataType::kUnspecified) {
    return FieldError(field, absl::StrCat(field, " has no data type, ", wanted, " ", names));
  }
  const std::string name = FindDataType(static_cast<int>(type)) == nullptr
                               ? absl::StrCat("unknown (", static_cast<int>(type), ")")
                               : std::string(Name(type));
  return FieldError(field, absl::StrCat(field, " is ", name, ", ", wanted, " ", names));
}

absl::StatusOr<int64_t> CheckTensor(const TensorView& tensor, absl::string_view field) {
  absl::StatusOr<int64_t> elements = ElementCount(tensor.shape, field);
  if (!elements.ok()) return elements;
  const uint64_t wanted = ByteSize(tensor.data_type, *elements);
  if (tensor.bytes.size() == wanted) return elements;
  return FieldError(
      field, absl::StrCat(field, " has ", tensor.bytes.size(), " bytes, ", Name(tensor.data_type),
                          " of shape ", ShapeString(tensor.shape), " takes ", wanted));
}

absl::Status CheckZeroPointShape(const Shape& zero_point, const Shape& scale) {
  if (OneElementShape(zero_point) == OneElementShape(scale)) return absl::OkStatus();
  return FieldError("zero_point", absl::StrCat("zero_point has shape ", ShapeString(zero_point),
                                               ", scale has ", ShapeString(scale)));
}

absl::Status FillBase(const TensorView& x, DataType output_type, const Blocks& blocks,
                      PlanBase& plan) {
  absl::StatusOr<int64_t> elements = CheckTensor(x, "x");
  if (!elements.ok()) return elements.status();
  plan.input_type = x.data_type;
  plan.output_type = output_type;
  plan.shape = x.shape;
  plan.elements = *elements;
  plan.input_bytes = ByteSize(x.data_type, *elements);
  plan.output_bytes = ByteSize(output_type, *elements);
  plan.block_shape = blocks.lengths;
  plan.layout = MakeLayout(x.shape, blocks);
  return absl::OkStatus();
}

std::vector<float> ReadFloats(const TensorView& tensor, int64_t elements) {
  std::vector<float> values(static_cast<size_t>(elements));
  float* const to = values.data();
  const DataType type = tensor.data_type;
  if (type == DataType::kFloat) {
    ForEachCode(tensor, elements,
                [to](size_t i, uint32_t code) { to[i] = std::bit_cast<float>(code); });
  } else if (type == DataType::kFloat16) {
    ForEachCode(tensor, elements, [to](size_t i, uint32_t code) { to[i] = Float16Value(code); });
  } else if (type == DataType::kBfloat16) {
    ForEachCode(tensor, elements, [to](size_t i, uint32_t code) { to[i] = Bfloat16Value(code); });
  } else if (Info(type).kind == DataTypeKind::kInteger) {
    ForEachInteger(tensor, elements,
                   [to](size_t i, int32_t value) { to[i] = static_cast<float>(value); });
  } else {
    std::array<float, 256> table;
    for (uint32_t code = 0; code < 1u << Info(type).bits; ++code) {
      table[code] = DecodeFloat(type, code);
    }
    ForEachCode(tensor, elements, [to, &table](size_t i, uint32_t code) { to[i] = table[code]; });
  }
  return values;
}

std::vector<int32_t> ReadCodes(const TensorView& tensor, int64_t elements) {
  std::vector<int32_t> values(static_cast<size_t>(elements));
  ForEachCode(tensor, elements, [to = values.data()](size_t i, uint32_t code) {
    to[i] = static_cast<int32_t>(code);
  });
  return values;
}

std::vector<int32_t> ReadIntegers(const TensorView& tensor, int64_t elements) {
  std::vector<int32_t> values(static_cast<size_t>(elements));
  ForEachInteger(tensor, elements,
                 [to = values.data()](size_t i, int32_t value) { to[i] = value; });
  return values;
}

absl::Status CheckZeroBytes(const TensorView& zero_point, int64_t elements) {
  const std::vector<int32_t> codes = ReadCodes(zero_point, elements);
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == 0) continue;
    return FieldError("zero_point", absl::StrCat("zero_point[", i, "] is byte ", codes[i], ", ",
                                                 Name(zero_point.data_type), " takes only 0"));
  }
  return absl::OkStatus();
}

}  // namespace quantd
