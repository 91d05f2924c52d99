// What a skeleton keeps, and how much is looked at. That a split request is the request, and that
// the same bytes are refused: differential_test.cc.
#include "server/wire/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "request_generator.h"
#include "server/wire/writer.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace {

using google::protobuf::Descriptor;

v1::QuantizeRequest TwoTensors() {
  v1::QuantizeRequest request;
  *request.mutable_x() = MakeTensor(v1::DATA_TYPE_UINT8, {5000}, std::string(5000, 'x'));
  *request.mutable_scale() = MakeTensor(v1::DATA_TYPE_FLOAT, {}, "scal");
  request.set_axis(3);
  return request;
}

// The tensors in a message, and in the messages in it.
void ExpectNamedTensors(const Descriptor& message) {
  const bool of_operation = std::any_of(
      kMethods.begin(), kMethods.begin() + kOperations, [&message](const MethodInfo& info) {
        return message.name() == absl::StrCat(info.name, "Request");
      });
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    if (field.message_type() == nullptr) continue;
    if (field.message_type() != v1::Tensor::descriptor()) {
      ExpectNamedTensors(*field.message_type());
      continue;
    }
    EXPECT_NE(TensorFieldNamed(field.name()), TensorField::kEnd)
        << field.full_name() << " loses its bytes: it needs a TensorField with a name (request.h)";
    EXPECT_TRUE(of_operation && !field.is_repeated())
        << field.full_name() << " loses bytes: Split has one tensor of a name for each operation";
  }
}

TEST(SplitRequestTest, EveryTensorHasAPlaceForItsBytes) {
  for (const MethodInfo& info : kMethods)
    ExpectNamedTensors(*DescriptorOf(info.method).input_type());
}

// Fields that a later version of the contract may add, however large.
TEST(SplitRequestTest, LeavesUnknownFieldsOut) {
  std::string tensor = MakeTensor(v1::DATA_TYPE_UINT8, {1}, "x").SerializeAsString();
  AppendBytesField(9, std::string(1000, 't'), tensor);
  std::string text;
  AppendBytesField(1, tensor, text);
  AppendBytesField(200, std::string(1000, 'r'), text);
  const Split split = SplitRequest(Method::kQuantize, View(text));
  EXPECT_LT(split.skeleton.size(), 20u);
  EXPECT_EQ(ToString(split.raw[0][0]), "x");
}

TEST(SplitRequestTest, PausesBetweenPieces) {
  std::string tensor, text;
  for (int i = 0; i < 100 << 10; ++i) tensor += "\x10\x01";  // dimensions
  AppendBytesField(v1::QuantizeRequest::kXFieldNumber, tensor, text);
  int pauses = 0;
  const Split split = SplitRequest(Method::kQuantize, View(text), [&pauses] { ++pauses; });
  EXPECT_EQ(pauses, 3);
  v1::QuantizeRequest request;
  EXPECT_TRUE(Parse(split, request, [&pauses] { ++pauses; }).ok());
  EXPECT_GE(pauses, 6);
  EXPECT_EQ(request.x().shape_size(), 100 << 10);
}

// All bytes beyond the fields that are looked at count.
TEST(RestOfTest, LooksAtSoManyFields) {
  const std::string tensors = TwoTensors().SerializeAsString();
  const uint64_t bytes = RestOf(Method::kQuantize, View(tensors)).bytes;
  const std::string unknown = "\xa0\x06\x01", group = "\xa3\x06\xa0\x06\x01\xa4\x06";
  for (const std::string& before : {unknown, group}) {
    const uint64_t fields = before == group ? 3 : 1;
    std::string text;
    for (int i = 0; i < 100; ++i) text += before;
    text += tensors;
    const Rest few = RestOf(Method::kQuantize, View(text), 90 * fields);
    EXPECT_FALSE(few.whole);
    EXPECT_EQ(few.bytes, text.size() - 90 * before.size());
    const Rest many = RestOf(Method::kQuantize, View(text), 1'000);
    EXPECT_TRUE(many.whole);
    EXPECT_EQ(many.bytes, bytes);
  }
  // Lists of one value each.
  std::string values, x, text;
  for (int i = 0; i < 100; ++i) values += std::string("\x0a\x04") + "????";
  AppendBytesField(4, values, x);
  AppendBytesField(1, x, text);
  EXPECT_EQ(RestOf(Method::kQuantize, View(text)).packed_floats, 400U);
  const Rest few = RestOf(Method::kQuantize, View(text), 50);
  EXPECT_TRUE(few.whole);
  EXPECT_EQ(few.packed_floats, 200U);
  EXPECT_EQ(few.bytes, text.size());
}

}  // namespace
}  // namespace quantd::wire
