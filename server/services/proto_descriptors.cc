// google.rpc's files are text here, in a pool of their own: compiled in, they would clash with the
// copy of every library that has one. Names and numbers are the published ones, all of them, as a
// tool may take the file for the whole of it.
#include "server/services/proto_descriptors.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "absl/strings/string_view.h"

namespace quantd::services {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptorProto;

namespace {

constexpr absl::string_view kStatus = R"(
syntax = "proto3";
package google.rpc;
import "google/protobuf/any.proto";
message Status {
  int32 code = 1;
  string message = 2;
  repeated google.protobuf.Any details = 3;
}
)";

constexpr absl::string_view kErrorDetails = R"(
syntax = "proto3";
package google.rpc;
import "google/protobuf/duration.proto";
message ErrorInfo {
  string reason = 1;
  string domain = 2;
  map<string, string> metadata = 3;
}
message RetryInfo {
  google.protobuf.Duration retry_delay = 1;
}
message DebugInfo {
  repeated string stack_entries = 1;
  string detail = 2;
}
message QuotaFailure {
  message Violation {
    string subject = 1;
    string description = 2;
  }
  repeated Violation violations = 1;
}
message PreconditionFailure {
  message Violation {
    string type = 1;
    string subject = 2;
    string description = 3;
  }
  repeated Violation violations = 1;
}
message BadRequest {
  message FieldViolation {
    string field = 1;
    string description = 2;
  }
  repeated FieldViolation field_violations = 1;
}
message RequestInfo {
  string request_id = 1;
  string serving_data = 2;
}
message ResourceInfo {
  string resource_type = 1;
  string resource_name = 2;
  string owner = 3;
  string description = 4;
}
message Help {
  message Link {
    string description = 1;
    string url = 2;
  }
  repeated Link links = 1;
}
message LocalizedMessage {
  string locale = 1;
  string message = 2;
}
)";

void Add(const char* name, absl::string_view text, DescriptorPool& pool) {
  google::protobuf::io::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  google::protobuf::io::Tokenizer tokenizer(&input, nullptr);
  google::protobuf::compiler::Parser parser;
  FileDescriptorProto file;
  // The text is ours: services_test sees to it that it can be parsed.
  if (!parser.Parse(&tokenizer, &file)) return;
  file.set_name(name);
  pool.BuildFile(file);
}

const DescriptorPool* Make() {
  // Names them, so that the linker keeps their files where protobuf is a static library.
  google::protobuf::Any::descriptor();
  google::protobuf::Duration::descriptor();
  auto* const pool = new DescriptorPool(DescriptorPool::generated_pool());
  Add("google/rpc/status.proto", kStatus, *pool);
  Add("google/rpc/error_details.proto", kErrorDetails, *pool);
  return pool;
}

}  // namespace

const DescriptorPool& Descriptors() {
  static const DescriptorPool* const pool = Make();
  return *pool;
}

}  // namespace quantd::services
