#include "plan/operands.h"

#include <algorithm>
#include <optional>
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
    DataType::kFloat6E2M3,     DataType::kFloat6E3M2, DataType::kFloat4E2M1};

// The names of the types: of integers, of others, or of all.
std::string NamesOf(absl::Span<const DataType> types, std::optional<bool> integers = {}) {
  // Longer lists are split into integers and others.
  constexpr size_t kGlance = 6;
  if (!integers.has_value() && types.size() > kGlance) {
    return absl::StrCat("the integers ", NamesOf(types, true), " and the floats ",
                        NamesOf(types, false));
  }
  std::string names;
  for (DataType one : types) {
    const bool integer = Info(one).kind == DataTypeKind::kInteger;
    if (integers.value_or(integer) != integer) continue;
    absl::StrAppend(&names, names.empty() ? "" : ", ", Name(one));
  }
  return names;
}

// The shape, with [1] for [].
Shape OneElementShape(const Shape& shape) { return shape.empty() ? Shape{1} : shape; }

}  // namespace

absl::Span<const DataType> QuantizedTypes() { return kQuantizedTypes; }

absl::Status CheckType(DataType type, absl::string_view field, absl::string_view wanted,
                       absl::Span<const DataType> allowed) {
  if (std::find(allowed.begin(), allowed.end(), type) != allowed.end()) return absl::OkStatus();
  const std::string names = NamesOf(allowed);
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

bool AllZero(absl::Span<const uint8_t> bytes) {
  // The loop has no early exit, which would keep compilers from vectorising it.
  uint8_t any = 0;
  for (const uint8_t byte : bytes) any |= byte;
  return any == 0;
}

absl::Status CheckZeroBytes(const TensorView& zero_point, int64_t elements) {
  if (AllZero(zero_point.bytes)) return absl::OkStatus();
  for (int64_t i = 0; i < elements; ++i) {
    const uint32_t code = LoadCode(zero_point.data_type, zero_point.bytes.data(), i);
    if (code == 0) continue;
    return FieldError("zero_point", absl::StrCat("zero_point[", i, "] is byte ", code, ", ",
                                                 Name(zero_point.data_type), " takes only 0"));
  }
  return absl::OkStatus();
}

}  // namespace quantd
