// The head of a call: what its HTTP/2 request headers say.
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
#include "server/transport/metadata.h"

namespace quantd::transport {

class Head {
 public:
  // Most bytes of names and values together, 32 for each header, as RFC 9113 counts them.
  static constexpr size_t kMaxBytes = 16 << 10;
  static constexpr size_t kFieldOverhead = 32;
  static constexpr size_t kMostRequestId = 128;

  // Takes a header. False when they are too many: then the rest need not come.
  bool Add(absl::string_view name, absl::string_view value);
  // Adds it to metadata(), too. Each of several values in one header counts as a header.
  void Keep(absl::string_view name, absl::string_view value);

  // What is wrong with the request as a gRPC call: UNIMPLEMENTED for an unknown compression,
  // INVALID_ARGUMENT for a timeout or a wanted compression that is none, RESOURCE_EXHAUSTED for too
  // many headers.
  absl::Status Check() const;

  // 0, or the HTTP status of a response to what is no gRPC call at all: 405 or 415.
  int HttpError() const;
  // Of HTTP's HEAD, whose response has no body.
  bool is_head() const { return is_head_; }

  // "authorization", of which nothing is kept then.
  std::string TakeAuthorization() { return std::exchange(authorization_, ""); }
  const std::string& path() const { return path_; }  // "/package.Service/Method"
  // x-request-id, cut to what a log should hold; empty: none.
  const std::string& request_id() const { return request_id_; }
  // How messages with the flag for it are compressed.
  Encoding encoding() const { return encoding_; }
  // How responses to this client may be compressed.
  const Encodings& accepts() const { return accepts_; }
  // quantd-compress-answers: how this call wants them; unset: it does not say.
  std::optional<Encoding> responses() const { return responses_; }
  // What the service wants to see of other headers: see CallHandler::Keeps.
  const Metadata& metadata() const { return metadata_; }
  // traceparent; unset: none, or one that is not as it should be, or several.
  const std::optional<trace::Context>& trace() const { return trace_; }
  // quantd-timing: 1: the trailers shall say where the time went.
  bool wants_timing() const { return wants_timing_; }
  // grpc-timeout, at most 8 digits of a unit; unset: none.
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
  std::optional<std::string> unknown_answers_;  // quantd-compress-answers, when it is none of ours
  std::string unknown_encoding_;                // grpc-encoding, when it is none of ours
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
