// The messages are written by hand: Debian has no protos of google.rpc, and a copy of them in the
// server would clash with the copy of whoever links both.
//
//   google.rpc.Status       { int32 code = 1; string message = 2; repeated Any details = 3; }
//   google.protobuf.Any     { string type_url = 1; bytes value = 2; }
//   google.rpc.BadRequest   { repeated FieldViolation { string field = 1; string description = 2; }
//                             field_violations = 1; }
//   google.rpc.ErrorInfo    { string reason = 1; string domain = 2; }
//   google.rpc.RetryInfo    { Duration { int64 seconds = 1; int32 nanos = 2; } retry_delay = 1; }
#include "server/wire/status_details.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "server/errors/reason.h"
#include "server/wire/utf8.h"
#include "server/wire/writer.h"

namespace quantd::wire {
namespace {

constexpr char kDomain[] = "quantd";

// When a client may try again. Long enough that those whom a full queue turned away do not come
// back before a large tensor is done.
constexpr uint64_t kRetryDelayNanos = 100'000'000;

std::string Clean(absl::string_view text) {
  std::string clean;
  clean.reserve(std::min(text.size(), kMaxErrorMessageBytes));
  while (!text.empty()) {
    absl::string_view valid = text.substr(0, ValidUtf8Prefix(text));
    const size_t room = kMaxErrorMessageBytes - clean.size();
    if (valid.size() >= room) {
      // Not in the middle of a character.
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

void AppendDetail(absl::string_view type, absl::string_view value, std::string& status) {
  std::string any;
  AppendBytesField(1, absl::StrCat("type.googleapis.com/google.rpc.", type), any);
  AppendBytesField(2, value, any);
  AppendBytesField(3, any, status);
}

std::string BadRequest(const ErrorText& text) {
  std::string violation;
  AppendBytesField(1, text.field, violation);
  AppendBytesField(2, text.message, violation);
  std::string bad_request;
  AppendBytesField(1, violation, bad_request);
  return bad_request;
}

std::string ErrorInfo(const absl::Status& status) {
  std::string info;
  AppendBytesField(1, errors::Reason(status), info);
  AppendBytesField(2, kDomain, info);
  return info;
}

std::string RetryInfo() {
  std::string delay;
  AppendVarintField(2, kRetryDelayNanos, delay);
  std::string info;
  AppendBytesField(1, delay, info);
  return info;
}

}  // namespace

ErrorText TextOf(const absl::Status& status) {
  return {.message = Clean(status.message()), .field = Clean(ErrorField(status))};
}

errors::CallStatus ToCallStatus(const absl::Status& status) {
  if (status.ok()) return {};
  const ErrorText text = TextOf(status);
  std::string details;
  AppendVarintField(1, static_cast<uint64_t>(status.code()), details);
  AppendBytesField(2, text.message, details);
  if (!text.field.empty()) AppendDetail("BadRequest", BadRequest(text), details);
  AppendDetail("ErrorInfo", ErrorInfo(status), details);
  if (absl::IsUnavailable(status)) AppendDetail("RetryInfo", RetryInfo(), details);
  // The numbers of absl's and gRPC's codes are the same.
  return {static_cast<int>(status.code()), text.message, std::move(details), {}};
}

}  // namespace quantd::wire
