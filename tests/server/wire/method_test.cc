// The table of methods against the contract.
#include "server/wire/method.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <string>

#include "quantd/v1/quantization.pb.h"

namespace quantd::wire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

// The number of the member of `envelope` that is a message of that type; 0: there is none.
uint32_t NumberOf(const Descriptor& envelope, const Descriptor& type) {
  for (int i = 0; i < envelope.field_count(); ++i) {
    const FieldDescriptor& field = *envelope.field(i);
    if (field.message_type() == &type) return static_cast<uint32_t>(field.number());
  }
  return 0;
}

TEST(MethodTest, TheTableIsTheContracts) {
  const ServiceDescriptor& service =
      *v1::QuantizeRequest::descriptor()->file()->FindServiceByName("QuantizationService");
  size_t index = 0;
  for (const MethodInfo& info : kMethods) {
    SCOPED_TRACE(std::string(info.name));
    EXPECT_EQ(info.method, static_cast<Method>(index));
    EXPECT_EQ(&Info(info.method), &info);
    EXPECT_EQ(Name(info.method), info.name);
    EXPECT_EQ(OperationIndex(info.method), index);
    EXPECT_EQ(service.full_name(), info.service);
    const MethodDescriptor* const method = service.FindMethodByName(std::string(info.name));
    ASSERT_NE(method, nullptr);
    EXPECT_EQ(info.type, method->client_streaming() ? "bidi_stream" : "unary");
    EXPECT_EQ(method->client_streaming(), method->server_streaming());
    EXPECT_EQ(info.item_field, NumberOf(*v1::StreamRequest::descriptor(), *method->input_type()));
    EXPECT_EQ(info.item_response,
              NumberOf(*v1::StreamResponse::descriptor(), *method->output_type()));
    ++index;
  }
  EXPECT_EQ(static_cast<int>(index), service.method_count());
}

}  // namespace
}  // namespace quantd::wire
