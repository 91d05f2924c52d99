// The server's errors in the C++ client.
#include "quantd/client/status.h"

#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include "quantd/client/status_details.pb.h"

namespace quantd::client {
namespace {

TEST(Status, CarriesTheFieldsAndTheDelay) {
  internal::BadRequest bad_request;
  auto* violation = bad_request.add_field_violations();
  violation->set_field("scale");
  violation->set_description("scale has 3 elements");
  internal::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(1);
  retry.mutable_retry_delay()->set_nanos(500'000'000);
  internal::Status details;
  auto* first = details.add_details();
  first->set_type_url("type.googleapis.com/google.rpc.BadRequest");
  first->set_value(bad_request.SerializeAsString());
  auto* second = details.add_details();
  second->set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  second->set_value(retry.SerializeAsString());
  const absl::Status status =
      FromGrpc(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no", details.SerializeAsString()));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "no");
  ASSERT_EQ(FieldViolations(status).size(), 1u);
  EXPECT_EQ(FieldViolations(status)[0].field, "scale");
  EXPECT_EQ(FieldViolations(status)[0].description, "scale has 3 elements");
  EXPECT_EQ(RetryDelay(status), absl::Milliseconds(1500));
}

// A server that stops, or a proxy before it, resets calls: the user has not cancelled them.
TEST(Status, AResetOfThePeersIsUnavailable) {
  const auto code = [](grpc::StatusCode given, const char* message) {
    return FromGrpc(grpc::Status(given, message)).code();
  };
  constexpr auto kCancelled = grpc::StatusCode::CANCELLED;
  EXPECT_EQ(code(kCancelled, "Received RST_STREAM with error code 8"),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(kCancelled, "CANCELLED"), absl::StatusCode::kCancelled);
  EXPECT_EQ(code(grpc::StatusCode::INTERNAL, "Received RST_STREAM with error code 2"),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace quantd::client
