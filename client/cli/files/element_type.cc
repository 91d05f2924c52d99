#include "files/element_type.h"

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "files/text.h"
#include "quantd/values.h"

namespace quantd::cli {
namespace {

// To numpy bfloat16 is a void type of two bytes, and FLOAT8E5M2 is "f1": ml_dtypes writes them like
// this. Every other type of ml_dtypes is "V1", which identifies no type, and so it is in files of
// quantctl.
constexpr std::array kElementTypes = {
    ElementType{"float", DataType::kFloat, Family::kService, 32, "f4", "F32"},
    ElementType{"float16", DataType::kFloat16, Family::kService, 16, "f2", "F16"},
    ElementType{"bfloat16", DataType::kBfloat16, Family::kService, 16, "V2", "BF16"},
    ElementType{"int32", DataType::kInt32, Family::kService, 32, "i4", "I32"},
    ElementType{"uint8", DataType::kUint8, Family::kService, 8, "u1", "U8"},
    ElementType{"int8", DataType::kInt8, Family::kService, 8, "i1", "I8"},
    ElementType{"uint16", DataType::kUint16, Family::kService, 16, "u2", "U16"},
    ElementType{"int16", DataType::kInt16, Family::kService, 16, "i2", "I16"},
    ElementType{"uint4", DataType::kUint4, Family::kService, 4, "", ""},
    ElementType{"int4", DataType::kInt4, Family::kService, 4, "", ""},
    ElementType{"uint2", DataType::kUint2, Family::kService, 2, "", ""},
    ElementType{"int2", DataType::kInt2, Family::kService, 2, "", ""},
    ElementType{"float8e4m3fn", DataType::kFloat8E4M3Fn, Family::kService, 8, "", "F8_E4M3"},
    ElementType{"float8e4m3fnuz", DataType::kFloat8E4M3Fnuz, Family::kService, 8, "",
                "F8_E4M3FNUZ"},
    ElementType{"float8e5m2", DataType::kFloat8E5M2, Family::kService, 8, "f1", "F8_E5M2"},
    ElementType{"float8e5m2fnuz", DataType::kFloat8E5M2Fnuz, Family::kService, 8, "",
                "F8_E5M2FNUZ"},
    ElementType{"float8e8m0", DataType::kFloat8E8M0, Family::kService, 8, "", "F8_E8M0"},
    ElementType{"float6e2m3", DataType::kFloat6E2M3, Family::kService, 6, "", "F6_E2M3"},
    ElementType{"float6e3m2", DataType::kFloat6E3M2, Family::kService, 6, "", "F6_E3M2"},
    ElementType{"float4e2m1", DataType::kFloat4E2M1, Family::kService, 4, "", "F4"},
    ElementType{"float64", DataType::kUnspecified, Family::kFloat64, 64, "f8", "F64"},
    ElementType{"int64", DataType::kUnspecified, Family::kSigned, 64, "i8", "I64"},
    ElementType{"uint64", DataType::kUnspecified, Family::kUnsigned, 64, "u8", "U64"},
    ElementType{"uint32", DataType::kUnspecified, Family::kUnsigned, 32, "u4", "U32"},
    ElementType{"bool", DataType::kUnspecified, Family::kUnsigned, 8, "b1", "BOOL"},
    ElementType{"complex64", DataType::kUnspecified, Family::kOpaque, 64, "c8", "C64"},
    ElementType{"complex128", DataType::kUnspecified, Family::kOpaque, 128, "c16", ""},
    ElementType{"void8", DataType::kUnspecified, Family::kOpaque, 8, "V1", ""},
};

// As numpy, ml_dtypes, torch, safetensors and papers call them.
constexpr auto kAliases = std::to_array<std::pair<absl::string_view, DataType>>({
    {"float32", DataType::kFloat},
    {"fp32", DataType::kFloat},
    {"f32", DataType::kFloat},
    {"half", DataType::kFloat16},
    {"fp16", DataType::kFloat16},
    {"f16", DataType::kFloat16},
    {"bf16", DataType::kBfloat16},
    {"fp8", DataType::kFloat8E4M3Fn},
    {"e4m3", DataType::kFloat8E4M3Fn},
    {"e4m3fn", DataType::kFloat8E4M3Fn},
    {"fp8e4m3", DataType::kFloat8E4M3Fn},
    {"fp8e4m3fn", DataType::kFloat8E4M3Fn},
    {"float8e4m3", DataType::kFloat8E4M3Fn},
    {"e4m3fnuz", DataType::kFloat8E4M3Fnuz},
    {"e5m2", DataType::kFloat8E5M2},
    {"fp8e5m2", DataType::kFloat8E5M2},
    {"e5m2fnuz", DataType::kFloat8E5M2Fnuz},
    {"e8m0", DataType::kFloat8E8M0},
    {"float8e8m0fnu", DataType::kFloat8E8M0},
    {"e2m3", DataType::kFloat6E2M3},
    {"fp6e2m3", DataType::kFloat6E2M3},
    {"float6e2m3fn", DataType::kFloat6E2M3},
    {"e3m2", DataType::kFloat6E3M2},
    {"fp6e3m2", DataType::kFloat6E3M2},
    {"float6e3m2fn", DataType::kFloat6E3M2},
    {"fp4", DataType::kFloat4E2M1},
    {"e2m1", DataType::kFloat4E2M1},
    {"fp4e2m1", DataType::kFloat4E2M1},
    {"float4e2m1fn", DataType::kFloat4E2M1},
});

template <typename T>
std::vector<double> Widen(absl::Span<const uint8_t> bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

}  // namespace

const ElementType* FindByNpy(absl::string_view descr) {
  for (const ElementType& row : kElementTypes) {
    if (!descr.empty() && row.npy == descr) return &row;
  }
  return nullptr;
}

const ElementType* FindBySafetensors(absl::string_view dtype) {
  for (const ElementType& row : kElementTypes) {
    if (!dtype.empty() && row.safetensors == dtype) return &row;
  }
  return nullptr;
}

const ElementType& ElementTypeOf(DataType type) {
  for (const ElementType& row : kElementTypes) {
    if (row.data_type == type) return row;
  }
  return kElementTypes.back();  // not reached: the table has every type of the service
}

std::vector<std::string> DataTypeNames() {
  std::vector<std::string> names;
  for (const ElementType& row : kElementTypes) {
    if (row.data_type != DataType::kUnspecified) names.emplace_back(row.name);
  }
  for (const auto& [alias, type] : kAliases) names.emplace_back(alias);
  return names;
}

std::string PlainTypeName(absl::string_view text) {
  const std::string plain =
      absl::StrReplaceAll(absl::AsciiStrToLower(text), {{"-", ""}, {"_", ""}});
  return std::string(absl::StripPrefix(plain, "datatype"));
}

absl::StatusOr<DataType> ParseDataType(absl::string_view text) {
  const std::string lower = PlainTypeName(text);
  for (const ElementType& row : kElementTypes) {
    if (row.data_type != DataType::kUnspecified && lower == row.name) return row.data_type;
  }
  for (const auto& [alias, type] : kAliases) {
    if (lower == alias) return type;
  }
  const std::vector<std::string> names = DataTypeNames();
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a data type",
                                                 DidYouMean(lower, names),
                                                 "; use one of: ", absl::StrJoin(names, ", ")));
}

std::vector<double> ToDoubles(const ElementType& type, int64_t elements,
                              absl::Span<const uint8_t> bytes) {
  if (type.data_type != DataType::kUnspecified) {
    if (Info(type.data_type).kind == DataTypeKind::kInteger) {
      const auto values = UnpackIntegers(type.data_type, elements, bytes);
      return {values.begin(), values.end()};
    }
    const auto values = UnpackFloats(type.data_type, elements, bytes);
    return {values.begin(), values.end()};
  }
  if (type.family == Family::kFloat64) return Widen<double>(bytes);
  if (type.family == Family::kSigned) return Widen<int64_t>(bytes);
  if (type.bits == 64) return Widen<uint64_t>(bytes);
  return type.bits == 32 ? Widen<uint32_t>(bytes) : Widen<uint8_t>(bytes);
}

std::string TypeName(DataType type) { return std::string(ElementTypeOf(type).name); }

}  // namespace quantd::cli
