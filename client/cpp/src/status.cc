#include "quantd/client/status.h"

#include <grpcpp/support/status.h>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "quantd/client/status_details.pb.h"

namespace quantd::client {
namespace {

constexpr char kBadRequest[] = "type.googleapis.com/google.rpc.BadRequest";
// gRPC's text for a stream that its peer has reset.
constexpr char kReset[] = "Received RST_STREAM";
constexpr char kRetryInfo[] = "type.googleapis.com/google.rpc.RetryInfo";

template <typename Message>
bool ParsePayload(const absl::Status& status, const char* type_url, Message* message) {
  const auto payload = status.GetPayload(type_url);
  return payload.has_value() && message->ParseFromString(std::string(*payload));
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  // A server or proxy has dropped the call, for example because it stops: nobody cancelled it here.
  const bool dropped = status.error_code() == grpc::StatusCode::CANCELLED &&
                       absl::StartsWith(status.error_message(), kReset);
  absl::Status result(
      dropped ? absl::StatusCode::kUnavailable : static_cast<absl::StatusCode>(status.error_code()),
      status.error_message());
  internal::Status details;
  if (details.ParseFromString(status.error_details())) {
    for (const internal::Detail& detail : details.details()) {
      result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
    }
  }
  return result;
}

absl::Status FromItemError(const v1::ItemError& error) {
  absl::Status result(static_cast<absl::StatusCode>(error.code()), error.message());
  internal::BadRequest bad_request;
  for (const v1::FieldViolation& violation : error.field_violations()) {
    auto* copy = bad_request.add_field_violations();
    copy->set_field(violation.field());
    copy->set_description(violation.description());
  }
  if (bad_request.field_violations_size() > 0) {
    // Not a Cord of a temporary std::string: clang gives that constructor another name than the g++
    // with which Debian's Abseil was compiled.
    const std::string bytes = bad_request.SerializeAsString();
    result.SetPayload(kBadRequest, absl::Cord(absl::string_view(bytes)));
  }
  return result;
}

std::vector<FieldViolation> FieldViolations(const absl::Status& status) {
  std::vector<FieldViolation> result;
  internal::BadRequest bad_request;
  if (ParsePayload(status, kBadRequest, &bad_request)) {
    for (const auto& violation : bad_request.field_violations()) {
      result.push_back({violation.field(), violation.description()});
    }
  }
  return result;
}

std::optional<absl::Duration> RetryDelay(const absl::Status& status) {
  internal::RetryInfo info;
  if (!ParsePayload(status, kRetryInfo, &info)) return std::nullopt;
  return absl::Seconds(info.retry_delay().seconds()) +
         absl::Nanoseconds(info.retry_delay().nanos());
}

}  // namespace quantd::client
