#include "plan/operands.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

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

// The elements of a tensor as `decode` has them. Codes of up to 8 bits are decoded once each: a
// scale every 32 elements is a lot of scales.
template <typename Value, typename Decode>
std::vector<Value> DecodeAll(const TensorView& tensor, int64_t elements, Decode decode) {
  std::vector<uint8_t> bytes(tensor.bytes.size());
  tensor.bytes.CopyTo(0, absl::MakeSpan(bytes));
  std::vector<Value> values(static_cast<size_t>(elements));
  const DataType type = tensor.data_type;
  const int bits = Info(type).bits;
  if (bits > 8 || elements < int64_t{1} << bits) {
    for (int64_t i = 0; i < elements; ++i) {
      values[static_cast<size_t>(i)] = decode(LoadCode(type, bytes.data(), i));
    }
    return values;
  }
  std::array<Value, 256> table;
  for (uint32_t code = 0; code < 1u << bits; ++code) table[code] = decode(code);
  for (int64_t i = 0; i < elements; ++i) {
    values[static_cast<size_t>(i)] = table[LoadCode(type, bytes.data(), i)];
  }
  return values;
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
  if (tensor.data_type == DataType::kFloat && std::endian::native == std::endian::little) {
    std::vector<float> values(static_cast<size_t>(elements));
    tensor.bytes.CopyTo(0, {reinterpret_cast<uint8_t*>(values.data()), tensor.bytes.size()});
    return values;
  }
  return DecodeAll<float>(tensor, elements, [type = tensor.data_type](uint32_t code) {
    return DecodeFloat(type, code);
  });
}

std::vector<int32_t> ReadCodes(const TensorView& tensor, int64_t elements) {
  return DecodeAll<int32_t>(tensor, elements,
                            [](uint32_t code) { return static_cast<int32_t>(code); });
}

std::vector<int32_t> ReadIntegers(const TensorView& tensor, int64_t elements) {
  return DecodeAll<int32_t>(tensor, elements, [type = tensor.data_type](uint32_t code) {
    return static_cast<int32_t>(DecodeInteger(type, code));
  });
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
