// Stored sets: the errors of incoming sets, and that a request which names a set means the same as
// one that contains the set's fields.
#include "server/wire/stored_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "many_messages.h"
#include "quantd/field_error.h"
#include "request_generator.h"
#include "request_testing.h"
#include "server/wire/convert.h"
#include "server/wire/decode.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using ::testing::HasSubstr;
using Fields = std::vector<const FieldDescriptor*>;

const std::string kReference = "layer@sha256:0123";

Fields FieldsOf(const Message& message) {
  Fields fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields;
}
void Clear(Message& message, const FieldDescriptor& field) {
  const FieldDescriptor* const own = message.GetDescriptor()->FindFieldByNumber(field.number());
  if (own != nullptr) message.GetReflection()->ClearField(&message, own);
}

// Not in x, nor in the fields about the form of the response.
bool MayBeStored(Method method, const FieldDescriptor& field) {
  const absl::string_view name = field.name();
  if (method == Method::kDequantize) {
    return name == "scale" || name == "zero_point" || name == "axis" || name == "block_size" ||
           name == "block_shape";
  }
  return name != "x" && name != "output" && name != "output_encoding" && name != "report_error" &&
         name != "parameters";
}

std::shared_ptr<const StoredSet> Store(const v1::ParameterSet& set) {
  auto stored = std::make_shared<StoredSet>();
  stored->reference = kReference;
  stored->bytes = set.SerializeAsString();
  const Split split = SplitSet(View(stored->bytes));
  EXPECT_TRUE(split.ok && stored->skeleton.ParseFromString(split.skeleton));
  const Method kind = set.has_quantize() ? Method::kQuantize : Method::kQuantizeEmbeddings;
  stored->raw = split.raw[OperationIndex(kind)];
  return stored;
}

// The set with these fields of a request.
v1::ParameterSet SetOf(Method method, const Message& fields) {
  v1::ParameterSet set;
  if (method == Method::kQuantizeEmbeddings) {
    EXPECT_TRUE(set.mutable_quantize_embeddings()->ParseFromString(fields.SerializeAsString()));
  } else {
    EXPECT_TRUE(set.mutable_quantize()->ParseFromString(fields.SerializeAsString()));
  }
  return set;
}

template <typename Message>
Message RandomFull(Method method, Random& random) {
  Message full;
  EXPECT_TRUE(full.ParseFromString(RandomRequest(method, random)));
  full.clear_parameters();
  return full;
}

template <typename Message>
void TestCompleted(Method method) {
  const uint64_t seed = TestSeed(20261123);
  int good = 0, twice = 0;
  for (int i = 0; i < 3'000; ++i) {
    SCOPED_TRACE(absl::StrCat("QUANTD_TEST_SEED=", seed + i));
    Random random(seed + i);
    const auto full = RandomFull<Message>(method, random);
    Message request = full;
    Message fields = full;
    const FieldDescriptor* both = nullptr;  // sometimes one field is in both
    for (const FieldDescriptor* field : FieldsOf(full)) {
      if (!MayBeStored(method, *field) || OneIn(random, 3)) {
        Clear(fields, *field);
      } else if (both == nullptr && OneIn(random, 20)) {
        both = field;
      } else {
        Clear(request, *field);
      }
    }
    request.set_parameters("layer");
    v1::ParameterSet set = SetOf(method, fields);
    // Dequantize does not use these.
    if (method == Method::kDequantize) {
      set.mutable_quantize()->set_precision(v1::DATA_TYPE_FLOAT16);
      set.mutable_quantize()->set_output_type(v1::DATA_TYPE_INT8);
    }
    const std::shared_ptr<const StoredSet> stored = Store(set);
    const std::vector<uint8_t> bytes = ToBytes(request.SerializeAsString());
    const std::vector<uint8_t> item_bytes =
        ToBytes(MakeItem(7, method, request.SerializeAsString()).SerializeAsString());
    const absl::StatusOr<Request> decoded = DecodeRequest(method, bytes, stored);
    const absl::StatusOr<Request> item = DecodeRequest(Method::kStream, item_bytes, stored);
    ASSERT_EQ(RestOf(method, bytes).parameters, "layer");
    ASSERT_EQ(RestOf(Method::kStream, item_bytes).parameters, "layer");
    ASSERT_EQ(item.status(), decoded.status());
    if (both != nullptr) {
      ++twice;
      ASSERT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
      ASSERT_EQ(ErrorField(decoded.status()), both->name());
      ASSERT_THAT(std::string(decoded.status().message()), HasSubstr(kReference));
      continue;
    }
    const std::vector<uint8_t> full_bytes = ToBytes(full.SerializeAsString());
    const absl::StatusOr<Request> expected = DecodeRequest(method, full_bytes);
    ExpectSame(decoded, expected);
    ExpectSame(item, expected);
    ASSERT_FALSE(testing::Test::HasFailure());
    if (!decoded.ok()) continue;
    ++good;
    ASSERT_EQ(decoded->stored, kReference);
    ASSERT_EQ(decoded->stored_set, stored);
    ASSERT_EQ(expected->stored, "");
    ASSERT_EQ(expected->stored_set, nullptr);
  }
  EXPECT_GT(good, 1'000);
  EXPECT_GT(twice, 100);
}

TEST(StoredSetTest, CompletesQuantize) { TestCompleted<v1::QuantizeRequest>(Method::kQuantize); }
TEST(StoredSetTest, CompletesDequantize) {
  TestCompleted<v1::DequantizeRequest>(Method::kDequantize);
}
TEST(StoredSetTest, CompletesQuantizeEmbeddings) {
  TestCompleted<v1::QuantizeEmbeddingsRequest>(Method::kQuantizeEmbeddings);
}

std::string Naming(Method method) {
  v1::QuantizeRequest request;  // the field's number is the same in all
  request.mutable_x()->set_data_type(v1::DATA_TYPE_FLOAT);
  request.set_parameters("layer");
  EXPECT_NE(method, Method::kDynamicQuantize);
  return request.SerializeAsString();
}

// The reference of a message, or of an item's operation.
std::string ParametersOf(const Message& message) {
  const auto* const reflection = message.GetReflection();
  if (const auto* const field = message.GetDescriptor()->FindFieldByName("parameters")) {
    return reflection->GetString(message, field);
  }
  const auto* const oneof = message.GetDescriptor()->FindOneofByName("request");
  const auto* const member =
      oneof == nullptr ? nullptr : reflection->GetOneofFieldDescriptor(message, oneof);
  return member == nullptr ? "" : ParametersOf(reflection->GetMessage(message, member));
}

TEST(StoredSetTest, ASetOfAnotherKindIsRefused) {
  v1::ParameterSet quantize, embeddings;
  quantize.mutable_quantize();
  embeddings.mutable_quantize_embeddings();
  for (const auto& [method, set, text] :
       {std::tuple(Method::kQuantize, embeddings,
                   "a set of quantize_embeddings, which is not for Q"),
        std::tuple(Method::kDequantize, embeddings,
                   "a set of quantize_embeddings, which is not for D"),
        std::tuple(Method::kQuantizeEmbeddings, quantize,
                   "a set of quantize, which is not for QuantizeEmbeddings")}) {
    const std::string bytes = Naming(method);
    const std::shared_ptr<const StoredSet> stored = Store(set);
    const absl::Status status = DecodeRequest(method, View(bytes), stored).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ErrorField(status), "parameters");
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }
}

TEST(StoredSetTest, WithoutASetARequestThatNamesOneIsRefused) {
  for (const Method method :
       {Method::kQuantize, Method::kDequantize, Method::kQuantizeEmbeddings}) {
    const std::string bytes = Naming(method);
    const absl::Status status = DecodeRequest(method, View(bytes)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(ErrorField(status), "parameters");
  }
  // A set that the request does not name has no effect.
  v1::ParameterSet set;
  set.mutable_quantize();
  const std::shared_ptr<const StoredSet> stored = Store(set);
  const std::string plain = [] {
    v1::DynamicQuantizeRequest request;
    *request.mutable_x() = MakeTensor(v1::DATA_TYPE_FLOAT, {}, "abcd");
    return request.SerializeAsString();
  }();
  const absl::StatusOr<Request> request =
      DecodeRequest(Method::kDynamicQuantize, View(plain), stored);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->stored, "");
  EXPECT_EQ(request->stored_set, nullptr);
}

// The reference that is found before parsing is the one that the parser finds; so is the item's id.
TEST(StoredSetTest, TheReferenceIsTheParsersWhateverTheMessage) {
  for (const Method subject : kSubjects) {
    int named = 0;
    ForManyMessages(subject, 20'000, [&](const std::string& text, bool& accepted) {
      const std::vector<uint8_t> bytes = ToBytes(text);
      const Rest rest = RestOf(subject, bytes);
      std::string parameters;
      if (subject == Method::kStream) {
        v1::StreamRequest item;
        accepted = item.ParseFromString(text);
        parameters = ParametersOf(item);
        if (accepted) {
          ASSERT_EQ(rest.id, item.id());
        }
      } else {
        const std::unique_ptr<Message> message(google::protobuf::MessageFactory::generated_factory()
                                                   ->GetPrototype(&DescriptorOf(subject))
                                                   ->New());
        accepted = message->ParseFromString(text);
        parameters = ParametersOf(*message);
      }
      if (!accepted) return;
      ASSERT_EQ(rest.parameters, parameters);
      named += parameters.empty() ? 0 : 1;
    });
    EXPECT_TRUE(named > 100 || subject == Method::kDynamicQuantize) << Name(subject);
  }
}

// ---- incoming sets ----

absl::StatusOr<Request> ConvertSet(const v1::ParameterSet& set, const std::string& bytes) {
  const Split split = SplitSet(View(bytes));
  v1::ParameterSet skeleton;
  EXPECT_TRUE(split.ok && skeleton.ParseFromString(split.skeleton));
  const Method kind = set.has_quantize() ? Method::kQuantize : Method::kQuantizeEmbeddings;
  return Convert(skeleton, split.raw[OperationIndex(kind)]);
}

// A set converts to the request without x, and an error of a field is an error in a set as well.
template <typename Message>
void TestConverted(Method method, const std::string& kind) {
  const uint64_t seed = TestSeed(20261124);
  int good = 0, bad = 0;
  for (int i = 0; i < 3'000; ++i) {
    SCOPED_TRACE(absl::StrCat("QUANTD_TEST_SEED=", seed + i));
    Random random(seed + i);
    auto full = RandomFull<Message>(method, random);
    if (OneIn(random, 20)) full.set_output_type(static_cast<v1::DataType>(99));
    Message fields = full;
    for (const FieldDescriptor* field : FieldsOf(full)) {
      if (MayBeStored(method, *field)) continue;
      Clear(fields, *field);
      if (field->name() != "x") Clear(full, *field);
    }
    const v1::ParameterSet set = SetOf(method, fields);
    const std::string bytes = set.SerializeAsString();
    const std::vector<uint8_t> full_bytes = ToBytes(full.SerializeAsString());
    absl::StatusOr<Request> expected = DecodeRequest(method, full_bytes);
    const absl::StatusOr<Request> converted = ConvertSet(set, bytes);
    if (!expected.ok()) {
      const std::string field = ErrorField(expected.status());
      if (absl::StartsWith(field, "x.")) continue;
      ++bad;
      ASSERT_EQ(converted.status().code(), absl::StatusCode::kInvalidArgument);
      ASSERT_EQ(ErrorField(converted.status()), absl::StrCat(kind, ".", field));
      ASSERT_EQ(converted.status().message(), absl::StrCat(kind, ".", expected.status().message()));
      continue;
    }
    ++good;
    TensorOf(*expected, TensorField::kX) = {};
    ExpectSame(converted, expected);
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_GT(good, 1'000);
  EXPECT_GT(bad, 50);
}

TEST(ParameterSetTest, IsARequestWithoutX) {
  TestConverted<v1::QuantizeRequest>(Method::kQuantize, "quantize");
  TestConverted<v1::QuantizeEmbeddingsRequest>(Method::kQuantizeEmbeddings, "quantize_embeddings");
}

TEST(ParameterSetTest, NothingIsRequired) {
  v1::ParameterSet set;
  EXPECT_EQ(ErrorField(ConvertSet(set, "").status()), "kind");
  set.mutable_quantize();
  EXPECT_TRUE(ConvertSet(set, set.SerializeAsString()).ok());
  set.mutable_quantize_embeddings();
  EXPECT_TRUE(ConvertSet(set, set.SerializeAsString()).ok());
}

template <typename Message>
void TestOnlyInRequests(const std::string& kind, const std::string& tensor) {
  const auto expect = [&](const std::string& field, auto change) {
    v1::ParameterSet set;
    if constexpr (std::is_same_v<Message, v1::QuantizeRequest>) {
      change(*set.mutable_quantize());
    } else {
      change(*set.mutable_quantize_embeddings());
    }
    const absl::Status status = ConvertSet(set, set.SerializeAsString()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ErrorField(status), absl::StrCat(kind, ".", field));
    EXPECT_EQ(status.message(),
              absl::StrCat(kind, ".", field,
                           " is set, but it belongs to a request and cannot be stored"));
  };
  expect("x", [](Message& message) { message.mutable_x(); });
  expect("output", [](Message& message) { message.mutable_output(); });
  expect("output_encoding",
         [](Message& message) { message.set_output_encoding(v1::TENSOR_ENCODING_RAW); });
  expect("report_error", [](Message& message) { message.set_report_error(true); });
  expect("parameters", [](Message& message) { message.set_parameters("another"); });
  expect(tensor + ".shared_memory", [](Message& message) {
    v1::Tensor* in = nullptr;
    if constexpr (std::is_same_v<Message, v1::QuantizeRequest>) {
      in = message.mutable_scale();
    } else {
      in = message.mutable_ranges();
    }
    in->set_data_type(v1::DATA_TYPE_FLOAT);
    in->mutable_shared_memory()->set_byte_size(4);
  });
}

TEST(ParameterSetTest, WhatOnlyRequestsHaveIsRefused) {
  TestOnlyInRequests<v1::QuantizeRequest>("quantize", "scale");
  TestOnlyInRequests<v1::QuantizeEmbeddingsRequest>("quantize_embeddings", "ranges");
}

}  // namespace
}  // namespace quantd::wire
