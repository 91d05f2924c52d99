// The head of a call: the contents of its HTTP/2 request headers.
//
//   Head head;
//   for each header: head.Add(name, value);
//   absl::Status status = head.Check();   // UNIMPLEMENTED, INVALID_ARGUMENT ...
#ifndef QUANTD_SERVER_TRANSPORT_HEAD_H_
#define QUANTD_SERVER_TRANSPORT_HEAD_H_

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/trace/context.h"
#include "server/transport/encoding.h"
#include "server/wire/call_status.h"

namespace quantd::transport {

// A service's own metadata in requests and responses (gRPC's Custom-Metadata), and the encoding of
// text and bytes in HTTP/2 headers. Names are in lower case; a value whose name ends in "-bin" is
// bytes.
using wire::Metadata;

// Adds the values of a header. One header may contain several binary values, separated by commas;
// values that are not Base64 are skipped.
void ParseMetadata(absl::string_view name, absl::string_view value, Metadata& metadata);

// The most values that a header may contain: 1 without commas.
size_t CountValues(absl::string_view name, absl::string_view value);

// The value as it is sent in a header.
std::string EncodeMetadata(const std::string& name, const std::string& value);

// Encodes grpc-message: printable ASCII except '%' is unchanged, everything else becomes %XX.
std::string PercentEncode(const std::string& message);
// Encodes binary metadata: Base64 without padding.
std::string Base64Encode(const std::string& bytes);

class Head {
 public:
  // The most bytes of names and values together, plus 32 per header, as counted by RFC 9113.
  static constexpr size_t kMaxBytes = 16 << 10;
  static constexpr size_t kFieldOverhead = 32;
  static constexpr size_t kMostRequestId = 128;

  // Takes a header. False: there are too many headers, and the remaining ones are not needed.
  bool Add(absl::string_view name, absl::string_view value);
  // Also adds the header to metadata(). Each of several values in one header counts as a header.
  void Keep(absl::string_view name, absl::string_view value);

  // The errors of the request as a gRPC call: UNIMPLEMENTED for an unknown compression,
  // INVALID_ARGUMENT for an invalid timeout or wanted compression, RESOURCE_EXHAUSTED for too many
  // headers.
  absl::Status Check() const;

  // 0, or the HTTP status of the response to a request that is not a gRPC call: 405 or 415.
  int HttpError() const;
  // Whether the method is HTTP's HEAD, whose response has no body.
  bool is_head() const { return is_head_; }

  // Returns the value of "authorization", and forgets it.
  std::string TakeAuthorization() { return std::exchange(authorization_, ""); }
  const std::string& path() const { return path_; }  // "/package.Service/Method"
  // x-request-id, shortened to what a log should contain; empty: none.
  const std::string& request_id() const { return request_id_; }
  // The compression of messages with the compressed flag.
  Encoding encoding() const { return encoding_; }
  // The encodings that the client accepts for responses.
  const Encodings& accepts() const { return accepts_; }
  // quantd-compress-answers: the encoding that the call wants for responses; nullopt: not given.
  std::optional<Encoding> responses() const { return responses_; }
  // Other headers that the service wants to see: see CallHandler::Keeps.
  const Metadata& metadata() const { return metadata_; }
  // traceparent; nullopt: none, an invalid one, or several.
  const std::optional<trace::Context>& trace() const { return trace_; }
  // quantd-timing is 1: the trailers contain the times of the call.
  bool wants_timing() const { return wants_timing_; }
  // grpc-timeout, at most 8 digits and a unit; nullopt: none.
  std::optional<std::chrono::nanoseconds> timeout() const { return timeout_; }

 private:
  void AddMetadata(absl::string_view name, absl::string_view value);

  size_t bytes_ = 0;
  bool is_post_ = false;
  bool is_head_ = false;
  bool is_grpc_ = false;
  bool bad_timeout_ = false;
  std::string path_;
  std::string authorization_;
  Encoding encoding_ = Encoding::kIdentity;
  Encodings accepts_;
  std::optional<Encoding> responses_;
  std::optional<std::string> unknown_answers_;  // quantd-compress-answers, if it is unknown
  std::string unknown_encoding_;                // grpc-encoding, if it is unknown
  std::optional<std::chrono::nanoseconds> timeout_;
  std::string request_id_;
  Metadata metadata_;
  std::optional<trace::Context> trace_;
  bool has_trace_parent_ = false;
  bool has_authorization_ = false;
  bool wants_timing_ = false;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_HEAD_H_
