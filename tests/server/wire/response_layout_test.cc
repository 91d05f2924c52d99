// The size of a response, known before it is made.
#include "server/wire/response_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "server/wire/encode.h"
#include "server/wire/response_parts.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace {

// One byte less would be too little, one byte more would be unused.
TEST(ResponseLayoutTest, AResponseFillsItsMemoryToTheLastByte) {
  constexpr double kAny = 1.5;
  for (const int64_t length : {0, 1, 100, 4000}) {
    ResponseLayout layout;
    layout.y = {DataType::kUint16, {1, length, 1}, length, static_cast<uint64_t>(2 * length)};
    layout.y.bytes = std::min<uint64_t>(layout.y.bytes, 4095);  // aligned from 4096 on
    layout.report_error = true;
    memory::Pool pool;
    Response response(layout, pool);
    response.contents().error = {kAny, kAny, kAny, ~uint64_t{0}, ~uint64_t{0}};
    const memory::Piece piece = std::move(response).FinishItem(~uint64_t{0});
    const uint8_t* const data = piece.buffer.data();
    EXPECT_EQ(piece.begin + piece.size, data + piece.buffer.capacity()) << length;
    EXPECT_GE(piece.begin, data + kRoomBefore);
    // The envelope's length takes fewer bytes than a varint may.
    EXPECT_LE(piece.begin, data + kRoomBefore + kMaxVarintSize);
  }
}

// The bytes around a y that is made elsewhere.
TEST(ResponseLayoutTest, WithoutYTheRestIsTheSame) {
  for (const int64_t length : {1, 100, 5'000, 1 << 20}) {
    ResponseLayout layout;
    layout.method = Method::kDynamicQuantize;
    layout.y = {DataType::kUint8, {length}, length, static_cast<uint64_t>(length)};
    layout.y_scale = {DataType::kFloat, {}, 1, 4};
    layout.y_zero_point = {DataType::kUint8, {}, 1, 1};
    memory::Pool pool;
    Response whole(layout, pool), rest(layout, pool, true);
    for (Response* const response : {&whole, &rest}) {
      ResponseContents& contents = response->contents();
      std::fill(contents.y.begin(), contents.y.end(), uint8_t{7});
      std::fill(contents.y_scale.begin(), contents.y_scale.end(), uint8_t{8});
      std::fill(contents.y_zero_point.begin(), contents.y_zero_point.end(), uint8_t{9});
    }
    const uint8_t* const y = rest.contents().y.data();
    EXPECT_TRUE(rest.contents().y.empty());
    const memory::Piece piece = std::move(rest).Finish();
    EXPECT_LT(piece.buffer.capacity(), 200u);
    EXPECT_GE(piece.begin, piece.buffer.data() + kRoomBefore);
    std::string bytes(piece.begin, piece.begin + piece.size);
    bytes.insert(static_cast<size_t>(y - piece.begin), layout.y.bytes, 7);
    const memory::Piece all = std::move(whole).Finish();
    EXPECT_TRUE(bytes == std::string(all.begin, all.begin + all.size)) << length;
  }
}

// The longest value of each type.
TEST(ResponseLayoutTest, ValuesTakeWhatTheLongestOneTakes) {
  constexpr uint64_t kElements = 1000;
  for (const DataTypeInfo& type : kDataTypes) {
    ResponseLayout layout;
    layout.encoding = Encoding::kValues;
    layout.y = {type.type, {1}, 0, 0};
    const uint64_t without = MaxEncodedBytes(layout);
    const uint64_t memory_without = ResponseMemoryBytes(layout);
    EXPECT_LT(without, 100u);
    EXPECT_LT(memory_without, 200u);
    layout.y.elements = kElements;
    layout.y.bytes = ByteSize(type.type, kElements);
    uint64_t each = sizeof(float);
    if (type.kind == DataTypeKind::kInteger) {
      each = std::max(VarintSize(static_cast<uint64_t>(type.minimum)),
                      VarintSize(static_cast<uint64_t>(type.maximum)));
    }
    EXPECT_EQ(MaxEncodedBytes(layout), without + each * kElements) << type.name;
    // Values that are packed twice, and values in two lists, of at most 8 bytes each.
    EXPECT_EQ(ResponseMemoryBytes(layout),
              memory_without + (each + 16) * kElements + 2 * layout.y.bytes);
  }
}

TEST(ResponseLayoutTest, SizesDoNotOverflow) {
  ResponseLayout layout;
  layout.y = {DataType::kFloat, {0}, 0, 0};
  layout.y_scale = {DataType::kFloat, {int64_t{1} << 61}, int64_t{1} << 61, uint64_t{1} << 63};
  layout.y_zero_point = {DataType::kInt32, {int64_t{1} << 61}, int64_t{1} << 61, uint64_t{1} << 63};
  EXPECT_EQ(MaxEncodedBytes(layout), ~uint64_t{0});
  layout.encoding = Encoding::kValues;
  EXPECT_EQ(MaxEncodedBytes(layout), ~uint64_t{0});
  EXPECT_EQ(ResponseMemoryBytes(layout), ~uint64_t{0});
}

TEST(ResponseLayoutTest, AnErrorReportHasRoomForEveryField) {
  v1::QuantizationError message;
  const google::protobuf::Descriptor& type = *v1::QuantizationError::descriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    if (field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE) {
      message.GetReflection()->SetDouble(&message, &field, 1);
    } else {
      message.GetReflection()->SetUInt64(&message, &field, ~uint64_t{0});
    }
  }
  EXPECT_EQ(kMaxErrorBytes, 2 + message.ByteSizeLong());  // its tag and its length
}

}  // namespace
}  // namespace quantd::wire
