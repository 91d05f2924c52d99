// The scanner against the generated parser: what one accepts the other accepts, with the same
// meaning, wherever the slices end.
#include <google/protobuf/reflection.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "message_generator.h"
#include "quantd/v1/quantization.pb.h"
#include "server/wire/decode.h"
#include "server/wire/fields.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace {

using Contents = TensorFields::Contents;

constexpr int kMessages = 120'000;
constexpr std::chrono::seconds kLongest(5);  // sanitized builds are slower

std::string Hex(const std::string& bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", byte);
    text += digits;
  }
  return text;
}

// ---- equality of the fields that were read with the message that was parsed ----

template <typename Repeated>
void ExpectSame(const DimensionList& list, const Repeated& values) {
  ASSERT_EQ(list.count, static_cast<uint64_t>(values.size()));
  for (size_t i = 0; i < list.dimensions.size(); ++i) ASSERT_EQ(list.dimensions[i], values.Get(i));
}

void ExpectSame(const IntegerList& list, const v1::IntValues& message) {
  ASSERT_EQ(list.count, static_cast<uint64_t>(message.values_size()));
  for (int i = 0; i < message.values_size(); ++i) {
    const int64_t value = message.values(i);
    if (value < INT32_MIN || value > INT32_MAX) {
      ASSERT_TRUE(list.wide.has_value());
      ASSERT_EQ(list.wide->index, static_cast<uint64_t>(i));
      ASSERT_EQ(list.wide->value, value);
      return;
    }
    ASSERT_EQ(list.values[i], value);
  }
  ASSERT_FALSE(list.wide.has_value());
}

void ExpectSame(const TensorFields& tensor, bool present, const v1::Tensor& message) {
  ASSERT_EQ(tensor.present, present);
  ASSERT_EQ(tensor.data_type, message.data_type());
  ExpectSame(tensor.shape, message.shape());
  switch (message.contents_case()) {
    case v1::Tensor::kRawData:
      ASSERT_EQ(tensor.contents, Contents::kRawData);
      ASSERT_EQ(ToString(tensor.raw_data), message.raw_data());
      break;
    case v1::Tensor::kFloatValues: {
      ASSERT_EQ(tensor.contents, Contents::kFloatValues);
      const auto& values = message.float_values().values();
      ASSERT_EQ(tensor.float_values.size(), static_cast<size_t>(values.size()));
      ASSERT_TRUE(values.empty() || std::memcmp(tensor.float_values.data(), values.data(),
                                                values.size() * sizeof(float)) == 0);
      break;
    }
    case v1::Tensor::kIntValues:
      ASSERT_EQ(tensor.contents, Contents::kIntValues);
      ExpectSame(tensor.int_values, message.int_values());
      break;
    case v1::Tensor::kSharedMemory:
      ASSERT_EQ(tensor.contents, Contents::kSharedMemory);
      break;
    case v1::Tensor::CONTENTS_NOT_SET:
      ASSERT_EQ(tensor.contents, Contents::kNone);
      break;
  }
}

// By reflection: every field of the contract is compared, those to come as well.
void ExpectSame(const RequestFields& fields, const google::protobuf::Message& message) {
  const auto* reflection = message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const auto* field = message.GetDescriptor()->field(i);
    const auto number = static_cast<uint32_t>(field->number());
    SCOPED_TRACE(field->name());
    using Type = google::protobuf::FieldDescriptor;
    if (field->name() == "block_shape") {
      ExpectSame(fields.block_shape, reflection->GetRepeatedFieldRef<int64_t>(message, field));
    } else if (field->name() == "output") {
      ASSERT_EQ(fields.present[number], reflection->HasField(message, field));
    } else if (field->message_type() != nullptr) {
      const auto name = std::find(kTensorFieldNames.begin(), kTensorFieldNames.end(),
                                  absl::string_view(field->name()));
      ASSERT_NE(name, kTensorFieldNames.end());
      ExpectSame(fields.tensors[name - kTensorFieldNames.begin()],
                 reflection->HasField(message, field),
                 static_cast<const v1::Tensor&>(reflection->GetMessage(message, field)));
    } else {
      const uint64_t value = fields.scalars[number];
      if (field->has_presence()) {
        ASSERT_EQ(fields.present[number], reflection->HasField(message, field));
      }
      switch (field->type()) {
        case Type::TYPE_BOOL:
          ASSERT_EQ(value != 0, reflection->GetBool(message, field));
          break;
        case Type::TYPE_ENUM:
          ASSERT_EQ(static_cast<int32_t>(value), reflection->GetEnumValue(message, field));
          break;
        case Type::TYPE_INT64:
          ASSERT_EQ(static_cast<int64_t>(value), reflection->GetInt64(message, field));
          break;
        default:
          FAIL() << "a field of a type that this test does not know";
      }
    }
  }
}

// ---- equality of two requests ----

void ExpectSame(const TensorView& a, const TensorView& b) {
  ASSERT_EQ(a.data_type, b.data_type);
  ASSERT_EQ(a.shape, b.shape);
  ASSERT_EQ(ToString(a.bytes), ToString(b.bytes));
}
void ExpectSame(const absl::StatusOr<Request>& a, const absl::StatusOr<Request>& b) {
  ASSERT_EQ(a.status(), b.status());
  if (!a.ok()) return;
  ASSERT_EQ(a->method(), b->method());
  ASSERT_EQ(a->output_encoding, b->output_encoding);
  std::visit(
      [&](const auto& parameters) {
        const auto& other = std::get<std::decay_t<decltype(parameters)>>(b->parameters);
        ExpectSame(parameters.x, other.x);
        ASSERT_EQ(parameters.output_type, other.output_type);
        ASSERT_EQ(parameters.granularity.axis, other.granularity.axis);
        ASSERT_EQ(parameters.granularity.block_size, other.granularity.block_size);
        ASSERT_EQ(parameters.granularity.block_shape, other.granularity.block_shape);
      },
      a->parameters);
}

// ---- the tests ----

struct Counts {
  int accepted = 0;
  int rejected = 0;
};

// Calls `check(message, slices, random)`, which says whether the message was accepted, for many
// messages of a type.
template <typename Check>
void ForManyMessages(const google::protobuf::Descriptor& type, Check check) {
  const uint64_t seed = TestSeed(20261121);
  const google::protobuf::LogSilencer silencer;  // the parser prints each bad string
  const auto start = std::chrono::steady_clock::now();
  Counts counts;
  for (int i = 0; i < kMessages; ++i) {
    Random random(seed + i);
    std::string message = RandomMessage(type, random);
    if (OneIn(random, 3)) message = Mutate(std::move(message), random);
    const std::vector<grpc::Slice> slices = Cut(message, random);
    bool accepted = false;
    check(message, slices, accepted);
    ++(accepted ? counts.accepted : counts.rejected);
    if (testing::Test::HasFailure()) {
      FAIL() << "QUANTD_TEST_SEED=" << seed + i << ", message 0 of it: " << Hex(message);
    }
    if (std::chrono::steady_clock::now() - start > kLongest) break;
  }
  std::printf("%d messages accepted, %d rejected\n", counts.accepted, counts.rejected);
  // Both sides of the border are walked.
  EXPECT_GT(counts.accepted, counts.rejected / 4);
  EXPECT_GT(counts.rejected, counts.accepted / 20);
}

// As gRPC's generated services read a message.
bool ParseSlices(const std::vector<grpc::Slice>& slices, google::protobuf::MessageLite& message) {
  grpc::ByteBuffer buffer(slices.data(), slices.size());
  grpc::ProtoBufferReader reader(&buffer);
  return message.ParseFromZeroCopyStream(&reader);
}

template <typename Message>
void TestRequests(Method method) {
  ForManyMessages(
      *Message::descriptor(),
      [&](const std::string& bytes, const std::vector<grpc::Slice>& slices, bool& accepted) {
        Message message;
        accepted = message.ParseFromString(bytes);
        Message from_slices;
        ASSERT_EQ(ParseSlices(slices, from_slices), accepted);
        const SliceList list(slices);
        RequestFields fields;
        ASSERT_EQ(ReadRequest(method, Scanner(list), fields), accepted);
        const absl::StatusOr<Request> request = DecodeRequest(method, list);
        if (!accepted) {
          ASSERT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument);
          return;
        }
        ExpectSame(fields, message);
        const std::string canonical = message.SerializeAsString();
        const SliceList canonical_list = OneSlice(canonical);
        ExpectSame(request, DecodeRequest(method, canonical_list));
      });
}

TEST(DifferentialTest, Quantize) { TestRequests<v1::QuantizeRequest>(Method::kQuantize); }
TEST(DifferentialTest, Dequantize) { TestRequests<v1::DequantizeRequest>(Method::kDequantize); }
TEST(DifferentialTest, DynamicQuantize) {
  TestRequests<v1::DynamicQuantizeRequest>(Method::kDynamicQuantize);
}

TEST(DifferentialTest, StreamItems) {
  ForManyMessages(
      *v1::StreamRequest::descriptor(),
      [&](const std::string& bytes, const std::vector<grpc::Slice>& slices, bool& accepted) {
        v1::StreamRequest message;
        accepted = message.ParseFromString(bytes);
        const SliceList list(slices);
        const StreamItem item = DecodeStreamItem(list);
        if (!accepted) {
          ASSERT_EQ(item.request.status().code(), absl::StatusCode::kInvalidArgument);
          return;
        }
        ASSERT_EQ(item.id, message.id());
        std::string inner;
        switch (message.request_case()) {
          case v1::StreamRequest::kQuantize:
            inner = message.quantize().SerializeAsString();
            break;
          case v1::StreamRequest::kDequantize:
            inner = message.dequantize().SerializeAsString();
            break;
          case v1::StreamRequest::kDynamicQuantize:
            inner = message.dynamic_quantize().SerializeAsString();
            break;
          case v1::StreamRequest::REQUEST_NOT_SET:
            ASSERT_FALSE(item.method.has_value());
            ASSERT_EQ(item.request.status().code(), absl::StatusCode::kInvalidArgument);
            return;
        }
        ASSERT_EQ(item.method, kMethods[message.request_case() - v1::StreamRequest::kQuantize]);
        const SliceList inner_list = OneSlice(inner);
        ExpectSame(item.request, DecodeRequest(*item.method, inner_list));
      });
}

}  // namespace
}  // namespace quantd::wire
