// Decoding against the generated parser: both accept the same messages, with the same meaning.
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "many_messages.h"
#include "quantd/v1/quantization.pb.h"
#include "request_testing.h"
#include "server/wire/decode.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace differential_test {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The operation of a stream's item, or null.
const Message* OperationOf(const Message& item, Method& method) {
  for (size_t i = 0; i < kOperations; ++i) {
    const FieldDescriptor* const field =
        item.GetDescriptor()->FindFieldByNumber(static_cast<int>(kMethods[i].item_field));
    if (!item.GetReflection()->HasField(item, field)) continue;
    method = kMethods[i].method;
    return &item.GetReflection()->GetMessage(item, field);
  }
  return nullptr;
}

void ExpectTensors(Request& request, const Message& message) {
  for (size_t i = 0; i < kTensorFields; ++i) {
    const FieldDescriptor* const field =
        message.GetDescriptor()->FindFieldByName(std::string(kTensorNames[i]));
    if (field == nullptr || !message.GetReflection()->HasField(message, field)) continue;
    const auto& tensor =
        dynamic_cast<const v1::Tensor&>(message.GetReflection()->GetMessage(message, field));
    const TensorView& view = TensorOf(request, static_cast<TensorField>(i));
    ASSERT_EQ(static_cast<int>(view.data_type), static_cast<int>(tensor.data_type()));
    ASSERT_EQ(std::vector<int64_t>(view.shape.begin(), view.shape.end()),
              std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end()));
    if (tensor.has_raw_data()) {
      ASSERT_EQ(ToString(view.bytes), tensor.raw_data());
    }
  }
}

class DecodeAnyRequestTest : public testing::TestWithParam<Method> {};

TEST_P(DecodeAnyRequestTest, IsWhatProtobufParses) {
  const Method subject = GetParam();
  const google::protobuf::Descriptor& type = *DescriptorOf(subject).input_type();
  ForManyMessages(subject, 120'000, [&](const std::string& text, bool& accepted) {
    const std::unique_ptr<Message> message = NewMessage(type);
    accepted = message->ParseFromString(text);
    const std::vector<uint8_t> bytes = ToBytes(text);
    absl::StatusOr<Request> request = DecodeRequest(subject, bytes);
    if (!accepted) {
      ExpectError(request, "", "truncated or not a quantd.v1." + type.name());
      return;
    }
    Method method = subject;
    const Message* const operation =
        subject == Method::kStream ? OperationOf(*message, method) : message.get();
    if (operation == nullptr) {
      ExpectError(request, "request", "none of");
      return;
    }
    const std::vector<uint8_t> canonical = ToBytes(operation->SerializeAsString());
    ExpectSame(request, DecodeRequest(method, canonical));
    if (request.ok()) ExpectTensors(*request, *operation);
  });
}

INSTANTIATE_TEST_SUITE_P(Every, DecodeAnyRequestTest, testing::ValuesIn(kSubjects),
                         [](const auto& subject) { return std::string(Name(subject.param)); });

}  // namespace differential_test
}  // namespace quantd::wire
