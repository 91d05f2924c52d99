// Shapes: sizes without overflow, and messages that name the field.
#include "gtest/gtest.h"
#include "quantd/shape.h"
#include "tensors.h"

namespace quantd {
namespace {

std::string CountError(const Shape& shape) {
  return FieldAndNumbers(ElementCount(shape, "x").status());
}

TEST(Shape, CountsElements) {
  EXPECT_EQ(ElementCount(Shape{}, "x").value(), 1);
  EXPECT_EQ(ElementCount(Shape{2, 3, 4}, "x").value(), 24);
  EXPECT_EQ(ElementCount(Shape{2, 0, 4}, "x").value(), 0);
  EXPECT_EQ(ElementCount(Shape{(int64_t{1} << 62) - 1}, "x").value(), (int64_t{1} << 62) - 1);
}

TEST(Shape, RefusesWhatCannotBe) {
  EXPECT_EQ(CountError({2, -3}), "x -3 1 2 -3 0");
  EXPECT_EQ(CountError({int64_t{1} << 62}), "x 4611686018427387904 2^62");
  EXPECT_EQ(CountError({int64_t{1} << 31, int64_t{1} << 31}), "x 2147483648 2147483648 2^62");
  EXPECT_EQ(CountError({INT64_MAX, INT64_MAX, INT64_MAX}).substr(0, 1), "x");
  EXPECT_EQ(CountError({0, int64_t{1} << 40, int64_t{1} << 40}),
            "x 0 1099511627776 1099511627776 2^62");
  EXPECT_EQ(FieldAndNumbers(ElementCount({int64_t{1} << 62}, "x.shape").status()),
            "x.shape 4611686018427387904 2^62");
  EXPECT_EQ(CountError(Shape(65, 1)), "x 65 64");
  EXPECT_EQ(CountError(Shape(64, 1)), "OK");
}

TEST(Shape, PacksSmallTypes) {
  EXPECT_EQ(ByteSize(DataType::kFloat, 3), 12u);
  EXPECT_EQ(ByteSize(DataType::kInt4, 0), 0u);
  EXPECT_EQ(ByteSize(DataType::kInt4, 3), 2u);
  EXPECT_EQ(ByteSize(DataType::kFloat4E2M1, 4), 2u);
  for (const auto& [elements, bytes] :
       {std::pair{0, 0u}, {1, 1u}, {2, 2u}, {3, 3u}, {4, 3u}, {5, 4u}}) {
    EXPECT_EQ(ByteSize(DataType::kFloat6E2M3, elements), bytes);
  }
  EXPECT_EQ(ByteSize(DataType::kFloat6E3M2, (int64_t{1} << 62) - 1), uint64_t{3} << 60);
  EXPECT_EQ(ByteSize(DataType::kUint2, 4), 1u);
  EXPECT_EQ(ByteSize(DataType::kUint2, 5), 2u);
  EXPECT_EQ(ByteSize(DataType::kFloat, (int64_t{1} << 62) - 1), UINT64_MAX - 3);
}

TEST(Shape, PrintsShort) {
  EXPECT_EQ(ShapeString(Shape{}), "[]");
  EXPECT_EQ(ShapeString(Shape{2, 3}), "[2, 3]");
  EXPECT_EQ(ShapeString(Shape(9, 1)), "[1, 1, 1, 1, 1, 1, 1, 1, ... 9 dimensions]");
}

TEST(DataTypes, AreFoundByNumber) {
  for (const DataTypeInfo& info : kDataTypes) {
    EXPECT_EQ(FindDataType(static_cast<int>(info.type)), &info);
    EXPECT_EQ(Name(info.type), info.name);
  }
  for (int number : {-1, 0, 7, 8, 9, 11, 15, 29, 1000}) EXPECT_EQ(FindDataType(number), nullptr);
  EXPECT_EQ(Name(DataType::kUnspecified), "UNSPECIFIED");
  EXPECT_EQ(Name(static_cast<DataType>(99)), "unknown");
}

}  // namespace
}  // namespace quantd
