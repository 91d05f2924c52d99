// gRPC's own services and the router, over a connection to a whole server in this process.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.pb.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "quantd/field_error.h"
#include "server/transport/encoding.h"
#include "server/transport/head.h"
#include "server/wire/call_status.h"
#include "server/wire/status_details.h"
#include "testing.h"

namespace quantd::rpc {
namespace services_test {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;
using transport::CallHead;
using transport::Data;
using transport::Prefixed;

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
constexpr char kReflect[] = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

class Services : public testing::Test {
 protected:
  // The status of a call with this one message; its responses are in client_->stream(id).
  int Call(int32_t id, absl::string_view path, const std::string& message) {
    client_->Say(CallHead(id, path) + Data(id, Prefixed(message), true));
    return client_->Status(id);
  }
  template <typename Message>
  Message ResponseOf(int32_t id, size_t which = 0) {
    Message message;
    const auto messages = client_->stream(id).Messages();
    EXPECT_TRUE(messages.has_value() && messages->size() > which);
    if (messages.has_value() && messages->size() > which) {
      EXPECT_TRUE(message.ParseFromString((*messages)[which]));
    }
    return message;
  }
  size_t AnswersOn(int32_t id) { return client_->stream(id).Messages().value_or(Strings()).size(); }

  using Strings = std::vector<std::string>;
  TestServer server_;
  std::unique_ptr<transport::Client> client_ = server_.Connect();
};

std::string Check(const std::string& service) {
  HealthCheckRequest request;
  request.set_service(service);
  return request.SerializeAsString();
}

TEST_F(Services, HealthChecks) {
  int32_t id = 1;
  for (const char* known : {"", "quantd.v1.QuantizationService"}) {
    ASSERT_EQ(Call(id, kCheck, Check(known)), 0);
    EXPECT_EQ(ResponseOf<HealthCheckResponse>(id).status(), HealthCheckResponse::SERVING);
    id += 2;
  }
  for (const std::string& unknown : {std::string("no"), std::string(10'000, 'x')}) {
    EXPECT_EQ(Call(id, kCheck, Check(unknown)), 5);
    id += 2;
  }
  EXPECT_EQ(Call(id, kCheck, "\xFF\xFF no protobuf"), 3);
  client_->Say(CallHead(id + 2, kCheck, true));  // without a request
  EXPECT_EQ(client_->Status(id + 2), 3);
}

// Thousands of watchers that start and stop in every way.
TEST_F(Services, HealthIsWatched) {
  client_->Say(CallHead(1, kWatch) + Data(1, Prefixed(Check(""))) + CallHead(3, kWatch) +
               Data(3, Prefixed(Check("no")), true));
  ASSERT_TRUE(client_->Until([&] { return AnswersOn(1) == 1 && AnswersOn(3) == 1; }));
  EXPECT_EQ(ResponseOf<HealthCheckResponse>(1).status(), HealthCheckResponse::SERVING);
  EXPECT_EQ(ResponseOf<HealthCheckResponse>(3).status(), HealthCheckResponse::SERVICE_UNKNOWN);
  int32_t id = 5;
  for (int i = 0; i < 2'000; ++i, id += 2) {
    client_->Say(CallHead(id, kWatch) + Data(id, Prefixed(Check("")), i % 2 == 0));
    if (i % 3 == 0) client_->Pump(std::chrono::milliseconds(0));
    if (i % 10 == 5) client_->Say(Data(id, "x"));
    client_->Say(transport::Rst(id));
  }
  ASSERT_TRUE(client_->Heard());
  client_->Say(CallHead(id, kWatch) + Data(id, Prefixed("\xFF")));
  EXPECT_EQ(client_->Status(id), 3);
  client_->Say(CallHead(id + 2, kWatch, true));
  EXPECT_EQ(client_->Status(id + 2), 3);

  // A drain tells the watchers that are left, and ends them.
  std::thread drain([this] { server_.Drain(); });
  EXPECT_EQ(client_->Status(1), 14);
  EXPECT_EQ(client_->Status(3), 14);
  EXPECT_EQ(ResponseOf<HealthCheckResponse>(1, 1).status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(AnswersOn(3), 1U);
  client_->Until([&] { return client_->closed(); });
  drain.join();
}

TEST_F(Services, ReflectionAnswersEveryQuestion) {
  std::vector<ServerReflectionRequest> questions(11);
  questions[0].set_list_services("");
  questions[1].set_file_containing_symbol("quantd.v1.QuantizationService");
  questions[2].set_file_by_filename("quantd/v1/quantization.proto");
  questions[3].set_file_by_filename("no.proto");
  questions[4].set_file_containing_symbol(std::string(10'000, 'x'));
  questions[5].set_all_extension_numbers_of_type("google.protobuf.FieldOptions");
  questions[6].set_all_extension_numbers_of_type("quantd.v1");
  questions[7].mutable_file_containing_extension()->set_containing_type("no");
  questions[8].set_host("asks nothing");
  questions[9].set_file_containing_symbol("google.rpc.RetryInfo");
  questions[10].set_file_containing_symbol("grpc.reflection.v1alpha.ServerReflection");
  std::string bytes;
  for (const auto& question : questions) bytes += Prefixed(question.SerializeAsString());
  client_->Say(CallHead(1, kReflect));
  ASSERT_TRUE(client_->SayFrames(1, bytes, 1'000, true));
  ASSERT_EQ(client_->Status(1), 0);
  ASSERT_EQ(AnswersOn(1), questions.size());
  const auto response = [this](size_t i) { return ResponseOf<ServerReflectionResponse>(1, i); };
  EXPECT_EQ(response(0).list_services_response().service_size(), 4);
  for (const size_t file : {1, 2}) {
    ASSERT_GT(response(file).file_descriptor_response().file_descriptor_proto_size(), 0);
    google::protobuf::FileDescriptorProto proto;
    ASSERT_TRUE(
        proto.ParseFromString(response(file).file_descriptor_response().file_descriptor_proto(0)));
    EXPECT_EQ(proto.name(), "quantd/v1/quantization.proto");
  }
  for (const size_t unknown : {3, 4, 6, 7}) {
    EXPECT_EQ(response(unknown).error_response().error_code(), 5) << unknown;
  }
  EXPECT_EQ(response(5).all_extension_numbers_response().base_type_name(),
            "google.protobuf.FieldOptions");
  EXPECT_EQ(response(8).error_response().error_code(), 3);
  EXPECT_EQ(response(8).original_request().host(), "asks nothing");
  // Its own file, and that of Duration.
  EXPECT_EQ(response(9).file_descriptor_response().file_descriptor_proto_size(), 2);
  google::protobuf::FileDescriptorProto alpha;
  ASSERT_TRUE(
      alpha.ParseFromString(response(10).file_descriptor_response().file_descriptor_proto(0)));
  EXPECT_EQ(alpha.package(), "grpc.reflection.v1alpha");
  EXPECT_EQ(alpha.service(0).method(0).input_type(),
            ".grpc.reflection.v1alpha.ServerReflectionRequest");
  EXPECT_EQ(Call(3, kReflect, "\xFF"), 3);
  // Questions get no permit, because they are only names (Router::MostBytes).
  questions[4].set_file_containing_symbol(std::string(13'000, 'x'));
  EXPECT_EQ(Call(5, kReflect, questions[4].SerializeAsString()), 8);
}

TEST_F(Services, WhatIsNoMethodIsUnimplemented) {
  int32_t id = 1;
  for (const std::string& path : {std::string("/"), std::string("/quantd.v1.QuantizationService"),
                                  std::string("/quantd.v1.QuantizationService/"),
                                  std::string("/quantd.v1.QuantizationService/quantize"),
                                  std::string("/quantd.v1.QuantizationService/Quantize/"),
                                  std::string("//Quantize"), "/" + std::string(10'000, 'x')}) {
    EXPECT_EQ(Call(id, path, ""), 12) << path.substr(0, 50);
    id += 2;
  }
  EXPECT_EQ(Call(id, "/grpc.health.v1.Health/Check", ""), 0);
}

// A client may allow only 8 KiB, as HTTP/2 counts them. Here with the longest texts, each byte of
// which is sent as three.
TEST(Trailers, TrailersAreAsShortAsClientsWantThem) {
  std::string text;
  while (text.size() < 10'000) text += "\u00e9";
  const wire::CallStatus status = wire::ToCallStatus(wire::WithReason(
      FieldError(text, text, absl::StatusCode::kUnavailable), "AS_LONG_AS_THEY_ARE_QUEUE_TIMEOUT"));
  const transport::Fields fields = {
      {":status", "200"},
      {"content-type", "application/grpc"},
      {"grpc-accept-encoding", std::string(transport::kEncodings)},
      {"grpc-status", absl::StrCat(status.code)},
      {"grpc-message", transport::PercentEncode(status.message)},
      {"grpc-status-details-bin", transport::Base64Encode(status.details)},
      {"quantd-timing-us",
       "decode=1234567890,queue=1234567890,kernel=1234567890,encode=1234567890"}};
  size_t bytes = 0;
  for (const auto& [name, value] : fields) bytes += name.size() + value.size() + 32;
  EXPECT_GT(bytes, 7'000U);
  EXPECT_LT(bytes, 8'192U);
}

}  // namespace services_test
}  // namespace quantd::rpc
