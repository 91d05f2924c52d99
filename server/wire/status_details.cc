#include "server/wire/status_details.h"

#include <algorithm>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "quantd/field_error.h"
#include "quantd/utf8.h"
#include "server/wire/call_status.h"

namespace quantd::wire {
namespace {

constexpr char kDomain[] = "quantd";

// When a client may retry. Long enough that clients that a full queue refused do not come back
// before a large tensor is done.
constexpr int32_t kRetryDelayNanos = 100'000'000;

std::string Clean(absl::string_view text) {
  std::string clean;
  clean.reserve(std::min(text.size(), kMaxErrorMessageBytes));
  while (!text.empty()) {
    absl::string_view valid = text.substr(0, ValidUtf8Prefix(text));
    const size_t room = kMaxErrorMessageBytes - clean.size();
    if (valid.size() >= room) {
      // Does not cut in the middle of a character.
      valid = valid.substr(0, ValidUtf8Prefix(valid.substr(0, room)));
      clean.append(valid.data(), valid.size());
      break;
    }
    clean.append(valid.data(), valid.size());
    text.remove_prefix(valid.size());
    if (!text.empty()) {
      clean.push_back('?');
      text.remove_prefix(1);
    }
  }
  return clean;
}

}  // namespace

ErrorText TextOf(const absl::Status& status) {
  return {.message = Clean(status.message()), .field = Clean(ErrorField(status))};
}

CallStatus ToCallStatus(const absl::Status& status) {
  if (status.ok()) return {};
  const ErrorText text = TextOf(status);
  // absl's and gRPC's codes have the same numbers.
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(text.message);
  if (!text.field.empty()) {
    google::rpc::BadRequest bad;
    google::rpc::BadRequest::FieldViolation& violation = *bad.add_field_violations();
    violation.set_field(text.field);
    violation.set_description(text.message);
    details.add_details()->PackFrom(bad);
  }
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(Reason(status)));
  info.set_domain(kDomain);
  details.add_details()->PackFrom(info);
  if (absl::IsUnavailable(status)) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_nanos(kRetryDelayNanos);
    details.add_details()->PackFrom(retry);
  }
  return {details.code(), text.message, details.SerializeAsString(), {}};
}

}  // namespace quantd::wire
