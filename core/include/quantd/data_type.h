// The element types, and a table of their properties.
//
//   const DataTypeInfo* info = FindDataType(2);  // nullptr: no such type
//   info->name == "UINT8", info->bits == 8
//
// Numbers and names are those of ONNX TensorProto.DataType. Everything here is constant and safe
// from any thread.
#ifndef QUANTD_DATA_TYPE_H_
#define QUANTD_DATA_TYPE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace quantd {

// Element type of a tensor.
enum class DataType : int {
  kUnspecified = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kFloat16 = 10,
  kBfloat16 = 16,
  kFloat8E4M3Fn = 17,
  kFloat8E4M3Fnuz = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2Fnuz = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
  kFloat6E2M3 = 27,
  kFloat6E3M2 = 28,
};

// The family of a type.
enum class DataTypeKind : uint8_t {
  kFloat,      // FLOAT, FLOAT16, BFLOAT16: what is quantized, and what Dequantize gives
  kInteger,    // signed and unsigned integers
  kFloat8,     // the four FLOAT8 with a mantissa
  kMiniFloat,  // FLOAT4E2M1 and the two FLOAT6: neither NaN nor infinity
  kExponent,   // FLOAT8E8M0
};

// One row of the table.
struct DataTypeInfo {
  DataType type;
  absl::string_view name;  // ONNX name, such as "FLOAT8E4M3FN"
  DataTypeKind kind;
  int bits;         // storage of one element: one of kWidths
  int64_t minimum;  // smallest value of an integer type, else 0
  int64_t maximum;  // largest value of an integer type, else 0
  float largest;    // largest finite value as FLOAT (integers: maximum)
  // emax of OCP Microscaling Formats 1.0, section 6.3; 0: not an MX element. MXINT8 counts in 1/64;
  // its elements here are whole numbers, so that its scale is 2^-6 of the format's.
  int mx_exponent;
};

// All types, sorted by number.
inline constexpr std::array<DataTypeInfo, 20> kDataTypes = {{
    {DataType::kFloat, "FLOAT", DataTypeKind::kFloat, 32, 0, 0, 0x1.fffffep127f, 0},
    {DataType::kUint8, "UINT8", DataTypeKind::kInteger, 8, 0, 255, 255, 0},
    {DataType::kInt8, "INT8", DataTypeKind::kInteger, 8, -128, 127, 127, 6},
    {DataType::kUint16, "UINT16", DataTypeKind::kInteger, 16, 0, 65535, 65535, 0},
    {DataType::kInt16, "INT16", DataTypeKind::kInteger, 16, -32768, 32767, 32767, 0},
    {DataType::kInt32, "INT32", DataTypeKind::kInteger, 32, INT32_MIN, INT32_MAX, 0x1p31f, 0},
    {DataType::kFloat16, "FLOAT16", DataTypeKind::kFloat, 16, 0, 0, 65504, 0},
    {DataType::kBfloat16, "BFLOAT16", DataTypeKind::kFloat, 16, 0, 0, 0x1.fep127f, 0},
    {DataType::kFloat8E4M3Fn, "FLOAT8E4M3FN", DataTypeKind::kFloat8, 8, 0, 0, 448, 8},
    {DataType::kFloat8E4M3Fnuz, "FLOAT8E4M3FNUZ", DataTypeKind::kFloat8, 8, 0, 0, 240, 0},
    {DataType::kFloat8E5M2, "FLOAT8E5M2", DataTypeKind::kFloat8, 8, 0, 0, 57344, 15},
    {DataType::kFloat8E5M2Fnuz, "FLOAT8E5M2FNUZ", DataTypeKind::kFloat8, 8, 0, 0, 57344, 0},
    {DataType::kUint4, "UINT4", DataTypeKind::kInteger, 4, 0, 15, 15, 0},
    {DataType::kInt4, "INT4", DataTypeKind::kInteger, 4, -8, 7, 7, 0},
    {DataType::kFloat4E2M1, "FLOAT4E2M1", DataTypeKind::kMiniFloat, 4, 0, 0, 6, 2},
    {DataType::kFloat8E8M0, "FLOAT8E8M0", DataTypeKind::kExponent, 8, 0, 0, 0x1p127f, 0},
    {DataType::kUint2, "UINT2", DataTypeKind::kInteger, 2, 0, 3, 3, 0},
    {DataType::kInt2, "INT2", DataTypeKind::kInteger, 2, -2, 1, 1, 0},
    {DataType::kFloat6E2M3, "FLOAT6E2M3", DataTypeKind::kMiniFloat, 6, 0, 0, 7.5, 2},
    {DataType::kFloat6E3M2, "FLOAT6E3M2", DataTypeKind::kMiniFloat, 6, 0, 0, 28, 4},
}};

// Each width has code of its own wherever elements are packed, here and in the clients.
inline constexpr std::array<int, 6> kWidths = {2, 4, 6, 8, 16, 32};
static_assert([] {
  for (const DataTypeInfo& info : kDataTypes) {
    bool known = false;
    for (const int bits : kWidths) known |= bits == info.bits;
    if (!known) return false;
  }
  return true;
}());

namespace internal {

// The index in kDataTypes for each number; -1: none.
inline constexpr auto kDataTypeRows = [] {
  std::array<int, static_cast<size_t>(kDataTypes.back().type) + 1> rows{};
  rows.fill(-1);
  for (size_t i = 0; i < kDataTypes.size(); ++i) {
    rows[static_cast<size_t>(kDataTypes[i].type)] = static_cast<int>(i);
  }
  return rows;
}();

}  // namespace internal

// The row of a number; nullptr if no type has the number (0 included).
constexpr const DataTypeInfo* FindDataType(int number) {
  const size_t index = static_cast<size_t>(number);
  if (index >= internal::kDataTypeRows.size() || internal::kDataTypeRows[index] < 0) return nullptr;
  return &kDataTypes[static_cast<size_t>(internal::kDataTypeRows[index])];
}

// The row of a type. REQUIRES: type is one of kDataTypes.
constexpr const DataTypeInfo& Info(DataType type) { return *FindDataType(static_cast<int>(type)); }

// The name of a type for messages; "UNSPECIFIED" or "unknown" if there is none.
constexpr absl::string_view Name(DataType type) {
  if (type == DataType::kUnspecified) return "UNSPECIFIED";
  const DataTypeInfo* info = FindDataType(static_cast<int>(type));
  return info == nullptr ? "unknown" : info->name;
}

}  // namespace quantd

#endif  // QUANTD_DATA_TYPE_H_
