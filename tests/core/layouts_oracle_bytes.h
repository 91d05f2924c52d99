// Bytes of the oracle for layouts, one element at a time.
#ifndef QUANTD_TESTS_CORE_LAYOUTS_ORACLE_BYTES_H_
#define QUANTD_TESTS_CORE_LAYOUTS_ORACLE_BYTES_H_

#include <bit>
#include <cstring>

#include "layouts_oracle.h"
#include "types/codes.h"

namespace quantd::oracle {

inline size_t WidthOf(DataType type) { return static_cast<size_t>(Info(type).bits / 8); }

inline void Put(DataType type, float value, ByteVector& bytes) {
  const uint32_t code = type == DataType::kFloat
                            ? std::bit_cast<uint32_t>(value)
                            : EncodeFormat(FormatOf(type), value, /*saturate=*/false);
  for (size_t i = 0; i < WidthOf(type); ++i) bytes.push_back(static_cast<uint8_t>(code >> 8 * i));
}
template <typename T>
void PutBytes(const T& value, ByteVector& bytes) {
  const auto* const from = reinterpret_cast<const uint8_t*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof(value));
}
template <typename T>
T Get(const ByteVector& bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}
inline float GetFloat(DataType type, const ByteVector& bytes, size_t index) {
  return DecodeFloat(type, LoadCode(type, bytes.data(), static_cast<int64_t>(index)));
}

inline bool IsInt8(Layout layout) {
  return layout == Layout::kInt8 || layout == Layout::kInt8Tensor;
}
inline bool IsAsymmetric(Layout layout) {
  return layout == Layout::kInt4G128Asym || layout == Layout::kInt4G32Asym;
}
inline bool IsNf4(Layout layout) {
  return layout == Layout::kBnbNf4 || layout == Layout::kBnbNf4Double;
}

}  // namespace quantd::oracle

#endif  // QUANTD_TESTS_CORE_LAYOUTS_ORACLE_BYTES_H_
