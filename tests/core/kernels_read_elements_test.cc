// Elements of any type, read from any index on, against LoadCode and DecodeFloat.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/read_elements.h"
#include "quantd/targets.h"
#include "tensors.h"

namespace quantd {
namespace {

// Every code of a type, or a sample from all of it.
std::vector<uint32_t> CodesOf(const DataTypeInfo& info) {
  std::vector<uint32_t> codes;
  const uint32_t count = info.bits > 16 ? 65536 : 1u << info.bits;
  for (uint32_t i = 0; i < count; ++i) codes.push_back(info.bits > 16 ? i * 65537u : i);
  while (codes.size() < 3000) codes.push_back(codes[codes.size() * 7 % count]);
  return codes;
}

template <typename Value, typename Read, typename Wanted>
void ExpectEvery(const DataTypeInfo& info, const Read& read, const Wanted& wanted) {
  const std::vector<uint32_t> codes = CodesOf(info);
  const Tensor tensor = Codes(info.type, {static_cast<int64_t>(codes.size())}, codes);
  for (const size_t misalignment : {0, 1}) {
    const Misaligned bytes(tensor.bytes(), misalignment);
    for (const size_t first : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 63, 1025}) {
      for (const size_t size : {codes.size() - first, size_t{0}, size_t{1}, size_t{5}}) {
        SCOPED_TRACE(absl::StrCat(std::string(info.name), " from ", first, " on, ", size));
        std::vector<Value> values(size);
        read(info.type, bytes.bytes().data(), first, size, values.data());
        for (size_t i = 0; i < size; ++i) {
          ASSERT_EQ(std::bit_cast<uint32_t>(values[i]),
                    std::bit_cast<uint32_t>(wanted(codes[first + i])))
              << "element " << i;
        }
      }
    }
  }
}

TEST(ReadElements, EveryCodeFromEveryElementOn) {
  for (const std::string& target : SupportedTargets()) {
    ASSERT_TRUE(SelectTarget(target).ok());
    SCOPED_TRACE(target);
    for (const DataTypeInfo& info : kDataTypes) {
      const bool float8 = info.kind == DataTypeKind::kFloat8;
      const bool nan_has_sign = !float8 || FormatOf(info.type).signed_specials;
      ExpectEvery<float>(
          info,
          [&](DataType type, const uint8_t* bytes, size_t first, size_t size, float* to) {
            ReadFloats(type, bytes, first, size, to);
            for (size_t i = 0; i < size; ++i) {
              if (to[i] != to[i] && !nan_has_sign) to[i] = std::fabs(to[i]);
            }
          },
          [&](uint32_t code) { return DecodeFloat(info.type, code); });
      ExpectEvery<int32_t>(info, ReadIntegers, [&](uint32_t code) {
        return static_cast<int32_t>(
            info.kind == DataTypeKind::kInteger ? DecodeInteger(info.type, code) : int64_t{code});
      });
    }
  }
}

TEST(ReadElements, FloatsWhereTheyLie) {
  alignas(float) const uint8_t bytes[8] = {};
  EXPECT_EQ(FloatsInPlace(DataType::kFloat, bytes), reinterpret_cast<const float*>(bytes));
  EXPECT_EQ(FloatsInPlace(DataType::kFloat, bytes + 1), nullptr);
  EXPECT_EQ(FloatsInPlace(DataType::kInt32, bytes), nullptr);
}

TEST(ReadElements, RoundedToAPrecision) {
  std::vector<float> values;
  for (int i = 0; i < 3000; ++i) values.push_back(1 + 0x1p-12f * static_cast<float>(i));
  for (const DataType precision : {DataType::kFloat16, DataType::kBfloat16}) {
    std::vector<float> rounded = values;
    RoundFloats(precision, rounded.data(), rounded.size());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(rounded[i], RoundTo(precision, values[i]));
    }
  }
}

}  // namespace
}  // namespace quantd
