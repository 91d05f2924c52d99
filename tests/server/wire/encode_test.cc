// Responses against the generated parser, and where their bytes lie.
#include "server/wire/encode.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "quantd/field_error.h"
#include "quantd/values.h"
#include "request_generator.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace {

TensorLayout Layout(DataType type, Shape shape) {
  int64_t elements = 1;
  for (int64_t dimension : shape) elements *= dimension;
  return {type, shape, elements, ByteSize(type, elements)};
}

// Bytes that show their position.
void Fill(absl::Span<uint8_t> bytes, int start) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(start + i * 7);
}
std::string Filled(size_t size, int start) {
  std::string bytes(size, '\0');
  Fill(absl::MakeSpan(reinterpret_cast<uint8_t*>(bytes.data()), size), start);
  return bytes;
}
void FillAll(ResponseContents& contents) {
  Fill(contents.y, 1);
  Fill(contents.y_scale, 2);
  Fill(contents.y_zero_point, 3);
  Fill(contents.y_tensor_scale, 4);
}

v1::Tensor Expected(const ResponseLayout& layout, const TensorLayout& tensor, int start) {
  v1::Tensor expected;
  expected.set_data_type(static_cast<v1::DataType>(tensor.data_type));
  expected.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  if (layout.output.has_value() && &tensor == &layout.y) {
    v1::SharedMemoryReference& place = *expected.mutable_shared_memory();
    place.set_region(layout.output->region);
    place.set_offset(layout.output->offset);
    place.set_byte_size(layout.output->byte_size);
    return expected;
  }
  const std::string bytes = Filled(tensor.bytes, start);
  if (layout.encoding == Encoding::kRaw) {
    expected.set_raw_data(bytes);
    return expected;
  }
  const absl::Span<const uint8_t> chunks = View(bytes);
  if (Info(tensor.data_type).kind == DataTypeKind::kInteger) {
    const auto values = UnpackIntegers(tensor.data_type, tensor.elements, chunks);
    expected.mutable_int_values()->mutable_values()->Add(values.begin(), values.end());
  } else {
    const auto values = UnpackFloats(tensor.data_type, tensor.elements, chunks);
    expected.mutable_float_values()->mutable_values()->Add(values.begin(), values.end());
  }
  return expected;
}

// A message in a field of its parent, which is made.
google::protobuf::Message& In(google::protobuf::Message& parent, const std::string& name) {
  return *parent.GetReflection()->MutableMessage(&parent,
                                                 parent.GetDescriptor()->FindFieldByName(name));
}

// The response that a program with generated messages would make from what FillAll wrote.
std::string Expected(const ResponseLayout& layout, const QuantizationError& error) {
  const auto response = NewMessage(*DescriptorOf(layout.method).output_type());
  In(*response, "y").CopyFrom(Expected(layout, layout.y, 1));
  const std::optional<TensorLayout>* const others[] = {&layout.y_scale, &layout.y_zero_point,
                                                       &layout.y_tensor_scale};
  const char* const names[] = {"y_scale", "y_zero_point", "y_tensor_scale"};
  for (int i = 0; i < 3; ++i) {
    if (!others[i]->has_value()) continue;
    In(*response, names[i]).CopyFrom(Expected(layout, **others[i], i + 2));
  }
  if (layout.report_error) {
    v1::QuantizationError report;
    report.set_sqnr_db(error.sqnr_db);
    report.set_mean_squared_error(error.mean_squared_error);
    report.set_max_absolute_error(error.max_absolute_error);
    report.set_saturated_elements(error.saturated_elements);
    report.set_non_finite_elements(error.non_finite_elements);
    In(*response, "quantization_error").CopyFrom(report);
  }
  return response->SerializeAsString();
}
std::string ExpectedItem(const ResponseLayout& layout, const std::string& response, uint64_t id) {
  const auto number = static_cast<int>(Info(layout.method).item_response);
  v1::StreamResponse item;
  item.set_id(id);
  EXPECT_TRUE(In(item, v1::StreamResponse::descriptor()->FindFieldByNumber(number)->name())
                  .ParseFromString(response));
  return item.SerializeAsString();
}

// The field quantization_error of DynamicQuantize is written behind y_tensor_scale, although its
// number is lower: its value is known last. All other fields have protobuf's order.
bool InProtobufsOrder(const ResponseLayout& layout) {
  return !layout.report_error || !layout.y_tensor_scale.has_value();
}

// There is room before it for the sender, and all of it is inside its buffer.
void ExpectRoom(const memory::Piece& piece) {
  ASSERT_NE(piece.buffer.data(), nullptr);
  ASSERT_GE(piece.begin, piece.buffer.data() + kRoomBefore);
  ASSERT_LE(piece.begin + piece.size, piece.buffer.data() + piece.buffer.capacity());
  std::memset(piece.begin - kRoomBefore, 0xee, kRoomBefore);  // a sanitizer checks it
}

template <typename Message>
void ExpectSame(const memory::Piece& piece, const std::string& expected,
                const ResponseLayout& layout) {
  ExpectRoom(piece);
  EXPECT_LE(piece.size, MaxEncodedBytes(layout));
  if (layout.encoding == Encoding::kRaw) {
    // The bound allows for the longest lengths and tags of four tensors and an error report.
    EXPECT_GE(piece.size + 300, MaxEncodedBytes(layout));
  }
  EXPECT_LE(piece.buffer.capacity(), memory::Pool::Footprint(ResponseMemoryBytes(layout)));
  const std::string bytes = ToString(piece);
  if (InProtobufsOrder(layout)) {
    ASSERT_TRUE(bytes == expected) << Hex(bytes.substr(0, 1000));
    return;
  }
  Message message;
  ASSERT_TRUE(message.ParseFromString(bytes));
  ASSERT_EQ(bytes.size(), expected.size());
  ASSERT_TRUE(message.SerializeAsString() == expected) << Hex(bytes.substr(0, 1000));
}

// Fills a response as call and as item, and compares both.
void TestResponse(const ResponseLayout& layout, const QuantizationError& error, uint64_t id) {
  memory::Pool pool;
  Response call(layout, pool);
  Response item(layout, pool);
  ASSERT_TRUE(call.has_memory() && item.has_memory());
  for (Response* response : {&call, &item}) {
    ResponseContents& contents = response->contents();
    ASSERT_EQ(contents.y.size(), layout.output ? 0 : layout.y.bytes);
    ASSERT_EQ(contents.y_scale.size(), layout.y_scale ? layout.y_scale->bytes : 0);
    ASSERT_EQ(contents.y_zero_point.size(), layout.y_zero_point ? layout.y_zero_point->bytes : 0);
    ASSERT_EQ(contents.y_tensor_scale.size(), layout.y_tensor_scale ? 4 : 0);
    FillAll(contents);
    contents.error = error;
    if (contents.y.size() >= 4096) {
      ASSERT_EQ(reinterpret_cast<uintptr_t>(contents.y.data()) % 64, 0);
    }
  }
  const uint8_t* const places[] = {call.contents().y.data(), item.contents().y.data()};
  const memory::Piece pieces[] = {std::move(call).Finish(), std::move(item).FinishItem(id)};
  const std::string expected = Expected(layout, error);
  ExpectSame<v1::DynamicQuantizeResponse>(pieces[0], expected, layout);
  ExpectSame<v1::StreamResponse>(pieces[1], ExpectedItem(layout, expected, id), layout);
  // Kernels write directly into the bytes that are sent.
  for (int i = 0; i < 2 && layout.encoding == Encoding::kRaw && !layout.output; ++i) {
    EXPECT_GE(places[i], pieces[i].begin);
    EXPECT_LE(places[i] + layout.y.bytes, pieces[i].begin + pieces[i].size);
  }
}

TEST(ResponseTest, QuantizeOfEverySize) {
  for (int64_t size : {0, 1, 4, 23, 24, 100, 127, 128, 4095, 4096, 16384, 100'000, 3'000'000}) {
    for (uint64_t id : {uint64_t{0}, uint64_t{5}, ~uint64_t{0}}) {
      ResponseLayout layout;
      layout.y = Layout(DataType::kUint8, {size});
      TestResponse(layout, {}, id);
    }
  }
}

// Every field that a plan can produce, in both encodings.
TEST(ResponseTest, RandomLayoutsAreWhatProtobufWouldWrite) {
  const uint64_t seed = TestSeed(20261123);
  for (int i = 0; i < 4'000; ++i) {
    Random random(seed + i);
    const auto tensor = [&random](int most) {
      Shape shape(Below(random, 4));
      for (int64_t& dimension : shape) dimension = static_cast<int64_t>(Below(random, most));
      return Layout(kDataTypes[Below(random, kDataTypes.size())].type, shape);
    };
    ResponseLayout layout;
    layout.method = kMethods[Below(random, kOperations)].method;
    layout.encoding = OneIn(random, 2) ? Encoding::kRaw : Encoding::kValues;
    layout.y = tensor(30);
    if (layout.encoding == Encoding::kRaw && OneIn(random, 3)) {
      layout.output = {std::string(1 + Below(random, 255), 'r'), random() >> Below(random, 65) % 64,
                       layout.y.bytes};
    }
    if (layout.method == Method::kDynamicQuantize) {
      if (!OneIn(random, 4)) layout.y_scale = tensor(10);
      if (OneIn(random, 2)) layout.y_zero_point = tensor(10);
      if (OneIn(random, 2)) layout.y_tensor_scale = Layout(DataType::kFloat, {});
    }
    QuantizationError error;
    if (layout.method != Method::kDequantize && OneIn(random, 2)) {
      layout.report_error = true;
      const double values[] = {0, -0.0, 1.5, std::numeric_limits<double>::infinity(), 1e-300};
      error = {.sqnr_db = values[Below(random, 5)],
               .mean_squared_error = values[Below(random, 5)],
               .max_absolute_error = values[Below(random, 5)],
               .saturated_elements = random() >> Below(random, 64),
               .non_finite_elements = Below(random, 3)};
    }
    TestResponse(layout, error, random() >> Below(random, 65) % 64);
    if (HasFailure()) FAIL() << "QUANTD_TEST_SEED=" << seed + i << ", answer 0 of it";
  }
}

TEST(ResponseTest, AResponseThatIsNotFinishedIsGivenBack) {
  ResponseLayout layout;
  layout.y = Layout(DataType::kUint8, {1 << 20});
  memory::Pool pool;
  for (int i = 0; i < 1000; ++i) Response response(layout, pool);
  EXPECT_EQ(pool.used_bytes(), 0u);
  EXPECT_EQ(pool.kept_bytes(), memory::Pool::Footprint((1 << 20) + 1));  // always the same buffer
}

// More than a pool has in one piece: the same happens when the system has no memory left.
TEST(ResponseTest, WithoutMemoryItSaysSo) {
  ResponseLayout layout;
  layout.y = Layout(DataType::kUint8, {int64_t{1} << 40});
  memory::Pool pool;
  EXPECT_FALSE(Response(layout, pool).has_memory());
  layout.encoding = Encoding::kValues;
  EXPECT_FALSE(Response(layout, pool).has_memory());
  EXPECT_EQ(pool.used_bytes(), 0u);
}

TEST(EncodeItemErrorTest, IsTheStatusAndItsField) {
  for (const auto& [status, field] :
       {std::pair(FieldError("scale", "scale has 3 elements"), "scale"),
        std::pair(absl::UnavailableError("full"), "")}) {
    memory::Pool pool;
    const memory::Piece piece = EncodeItemError(12, status, pool);
    ExpectRoom(piece);
    v1::StreamResponse item;
    ASSERT_TRUE(item.ParseFromString(ToString(piece)));
    EXPECT_EQ(item.id(), 12u);
    EXPECT_EQ(item.error().code(), static_cast<int>(status.code()));
    EXPECT_EQ(item.error().message(), status.message());
    ASSERT_EQ(item.error().field_violations_size(), *field == '\0' ? 0 : 1);
    for (const auto& violation : item.error().field_violations()) {
      EXPECT_EQ(violation.field(), field);
      EXPECT_EQ(violation.description(), status.message());
    }
  }
}

TEST(MaxEncodedBytesTest, SizesDoNotOverflow) {
  ResponseLayout layout;
  layout.y = {DataType::kFloat, {0}, 0, 0};
  layout.y_scale = {DataType::kFloat, {int64_t{1} << 61}, int64_t{1} << 61, uint64_t{1} << 63};
  layout.y_zero_point = {DataType::kInt32, {int64_t{1} << 61}, int64_t{1} << 61, uint64_t{1} << 63};
  EXPECT_EQ(MaxEncodedBytes(layout), ~uint64_t{0});
  layout.encoding = Encoding::kValues;
  EXPECT_EQ(MaxEncodedBytes(layout), ~uint64_t{0});
  EXPECT_EQ(ResponseMemoryBytes(layout), ~uint64_t{0});
}

}  // namespace
}  // namespace quantd::wire
