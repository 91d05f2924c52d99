// See head.h. The names and formats are those of gRPC over HTTP/2 (PROTOCOL-HTTP2).
#include "server/transport/head.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace quantd::transport {
namespace {

// "5S", "100m": at most eight digits and a unit.
std::optional<std::chrono::nanoseconds> ParseTimeout(absl::string_view text) {
  if (text.size() < 2 || text.size() > 9) return std::nullopt;
  int64_t value = 0;
  for (const char c : text.substr(0, text.size() - 1)) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return std::nullopt;
    value = 10 * value + (c - '0');
  }
  int64_t unit = 0;  // nanoseconds
  switch (text.back()) {
    case 'H':
      unit = 3'600'000'000'000;
      break;
    case 'M':
      unit = 60'000'000'000;
      break;
    case 'S':
      unit = 1'000'000'000;
      break;
    case 'm':
      unit = 1'000'000;
      break;
    case 'u':
      unit = 1'000;
      break;
    case 'n':
      unit = 1;
      break;
    default:
      return std::nullopt;
  }
  // A deadline in a year is as good as none; and it does not overflow.
  constexpr int64_t kMost = 366LL * 24 * 3'600'000'000'000;
  return std::chrono::nanoseconds(value > kMost / unit ? kMost : value * unit);
}

bool IsBinary(absl::string_view name) { return absl::EndsWith(name, "-bin"); }

}  // namespace

void ParseMetadata(absl::string_view name, absl::string_view value, Metadata& metadata) {
  if (!IsBinary(name)) {
    metadata.emplace_back(name, value);
    return;
  }
  for (const absl::string_view part : absl::StrSplit(value, ',')) {
    std::string bytes;
    // Padding is optional.
    if (absl::Base64Unescape(absl::StripAsciiWhitespace(part), &bytes)) {
      metadata.emplace_back(name, std::move(bytes));
    }
  }
}

size_t CountValues(absl::string_view name, absl::string_view value) {
  return IsBinary(name) ? 1 + static_cast<size_t>(std::count(value.begin(), value.end(), ',')) : 1;
}

std::string EncodeMetadata(const std::string& name, const std::string& value) {
  return IsBinary(name) ? Base64Encode(value) : value;
}

std::string PercentEncode(const std::string& message) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(message.size());
  for (const char c : message) {
    if (c >= ' ' && c <= '~' && c != '%') {
      encoded.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded.push_back('%');
    encoded.push_back(kDigits[byte >> 4]);
    encoded.push_back(kDigits[byte & 15]);
  }
  return encoded;
}

std::string Base64Encode(const std::string& bytes) {
  std::string encoded = absl::Base64Escape(bytes);
  while (!encoded.empty() && encoded.back() == '=') encoded.pop_back();
  return encoded;
}

bool Head::Add(absl::string_view name, absl::string_view value) {
  bytes_ += name.size() + value.size() + kFieldOverhead;
  if (bytes_ > kMaxBytes) return false;
  if (name == ":path") {
    path_ = std::string(value);
  } else if (name == ":method") {
    is_post_ = value == "POST";
    is_head_ = value == "HEAD";
  } else if (name == "content-type") {
    // "application/grpc", "application/grpc+proto", "application/grpc;charset=..."
    constexpr absl::string_view kType = "application/grpc";
    is_grpc_ =
        absl::StartsWith(value, kType) &&
        (value.size() == kType.size() || value[kType.size()] == '+' || value[kType.size()] == ';');
  } else if (name == "grpc-timeout") {
    timeout_ = ParseTimeout(value);
    bad_timeout_ = !timeout_.has_value();
  } else {
    // White space around metadata does not belong to it (gRPC over HTTP/2, "ASCII-Value").
    AddMetadata(name, absl::StripAsciiWhitespace(value));
  }
  return true;
}

void Head::AddMetadata(absl::string_view name, absl::string_view value) {
  if (name == "authorization") {
    // If there are two, neither is valid, even if one is empty.
    if (std::exchange(has_authorization_, true)) authorization_.append(", ");
    authorization_.append(value.data(), value.size());
  } else if (name == "grpc-encoding") {
    const std::optional<Encoding> known = ParseEncoding(value);
    encoding_ = known.value_or(Encoding::kIdentity);
    unknown_encoding_ = known.has_value() ? "" : std::string(value.substr(0, 64));
  } else if (name == "grpc-accept-encoding") {
    accepts_ = Encodings::Parse(value);
  } else if (name == "quantd-compress-answers") {
    responses_ = ParseCompression(value);
    unknown_answers_.reset();
    if (!responses_.has_value()) unknown_answers_ = std::string(value.substr(0, 64));
  } else if (name == "x-request-id") {
    request_id_ = std::string(value.substr(0, kMostRequestId));
  } else if (name == "traceparent") {
    // If there are several, none is valid (W3C).
    trace_ = has_trace_parent_ ? std::nullopt : trace::ParseTraceParent(value);
    has_trace_parent_ = true;
  } else if (name == "quantd-timing") {
    wants_timing_ = value == "1";
  }
}

void Head::Keep(absl::string_view name, absl::string_view value) {
  bytes_ += (CountValues(name, value) - 1) * (name.size() + kFieldOverhead);
  if (bytes_ <= kMaxBytes) ParseMetadata(name, value, metadata_);
}

absl::Status Head::Check() const {
  if (bytes_ > kMaxBytes) {
    return wire::WithReason(
        absl::ResourceExhaustedError(absl::StrCat("the call's metadata takes over ", kMaxBytes,
                                                  " bytes, the most that is allowed")),
        "METADATA_TOO_LARGE");
  }
  if (bad_timeout_) return absl::InvalidArgumentError("grpc-timeout is not a number and a unit");
  if (unknown_answers_.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "quantd-compress-answers is '", *unknown_answers_, "', must be none, gzip or deflate"));
  }
  if (!unknown_encoding_.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("grpc-encoding is '", unknown_encoding_, "', the server takes ", kEncodings));
  }
  return absl::OkStatus();
}

int Head::HttpError() const {
  if (!is_post_) return 405;
  return is_grpc_ ? 0 : 415;
}

}  // namespace quantd::transport
