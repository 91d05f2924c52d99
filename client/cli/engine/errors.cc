#include "engine/errors.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "quantd/client/status.h"
#include "quantd/field_error.h"

namespace quantd::cli {
namespace {

constexpr char kOperationPayload[] = "quantctl/operation-error";
constexpr char kFromServerPayload[] = "quantctl/from-server";

absl::Status WithText(const absl::Status& status, absl::string_view text) {
  absl::Status result(status.code(), text);
  status.ForEachPayload([&result](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  result.SetPayload(kOperationPayload, absl::Cord("1"));
  return result;
}

}  // namespace

absl::Status ServerError(const absl::Status& status, absl::string_view address) {
  std::string text(status.message());
  if (absl::StrContains(text, "http1.x server") || absl::StrContains(text, "parsing HTTP/2")) {
    text = absl::StrCat(address, " answers, but not in plain HTTP/2: does it need TLS (--tls_ca)? ",
                        text);
  } else if (absl::IsUnavailable(status)) {
    text = client::RetryDelay(status).has_value()
               ? absl::StrCat(text, "; the server at ", address, " is busy, try again")
               : absl::StrCat("cannot reach ", address, ": ", text,
                              "; is quantd running there (quantd --listen=", address,
                              ")? Without --address and QUANTD_ADDRESS no server is needed");
  } else if (absl::IsDeadlineExceeded(status)) {
    absl::StrAppend(&text, "; --timeout gives it more seconds");
  } else if (absl::IsResourceExhausted(status)) {
    absl::StrAppend(&text, "; without --address quantctl computes it here");
  } else if (absl::IsUnimplemented(status)) {
    absl::StrAppend(&text, "; this server does not have it, see quantctl info");
  }
  if (absl::IsUnauthenticated(status)) {
    absl::StrAppend(&text, "; --auth_token_file names the file that holds one");
  }
  absl::Status result = WithText(status, text);
  result.SetPayload(kFromServerPayload, absl::Cord(address));
  return result;
}

absl::Status OptionsError(const absl::Status& status) {
  constexpr std::pair<absl::string_view, absl::string_view> kFlags[] = {
      {"ca_file", "--tls_ca"},
      {"certificate_file", "--tls_cert"},
      {"key_file", "--tls_key"},
      {"auth_token_file", "--auth_token_file"},
      {"address", "--address"}};
  for (const auto& [name, flag] : kFlags) {
    absl::string_view rest = status.message();
    if (!absl::ConsumePrefix(&rest, name)) continue;
    return absl::Status(status.code(), absl::StrReplaceAll(absl::StrCat(flag, rest),
                                                           {{"key_file is", "--tls_key is"}}));
  }
  return status;
}

absl::Status OperationError(const absl::Status& status, absl::string_view operation,
                            absl::string_view tensor) {
  if (absl::IsUnavailable(status)) return WithText(status, status.message());
  std::string text = absl::StrCat("cannot ", operation, tensor.empty() ? "" : " '", tensor,
                                  tensor.empty() ? "" : "'", ": ", status.message(), " (",
                                  absl::StatusCodeToString(status.code()));
  if (const std::string field = ErrorField(status); !field.empty()) {
    absl::StrAppend(&text, ", field ", field);
  }
  for (const client::FieldViolation& violation : client::FieldViolations(status)) {
    absl::StrAppend(&text, ", field ", violation.field);
  }
  if (const auto address = status.GetPayload(kFromServerPayload)) {
    absl::StrAppend(&text, ", from ", std::string(*address));
  }
  text.push_back(')');
  if (absl::StrContains(text, "NaN") || absl::StrContains(text, "finite")) {
    absl::StrAppend(&text, "; --non_finite=ignore leaves such elements out of the range");
  }
  return WithText(status, text);
}

absl::Status AsOperationError(const absl::Status& status) {
  return WithText(status, status.message());
}

bool IsOperationError(const absl::Status& status) {
  return status.GetPayload(kOperationPayload).has_value();
}

}  // namespace quantd::cli
