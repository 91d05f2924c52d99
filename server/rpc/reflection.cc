#include "server/rpc/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_replace.h"

namespace quantd::rpc {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

namespace {

// The protos that are compiled in, and those of v1alpha, which are v1's under another name.
const DescriptorPool& Descriptors() {
  static const DescriptorPool* const descriptors = [] {
    auto* const pool = new DescriptorPool(DescriptorPool::generated_pool());
    google::protobuf::FileDescriptorProto file;
    ServerReflectionRequest::descriptor()->file()->CopyTo(&file);
    std::string text;
    google::protobuf::TextFormat::PrintToString(file, &text);
    text = absl::StrReplaceAll(text, {{"grpc.reflection.v1", "grpc.reflection.v1alpha"},
                                      {"grpc/reflection/v1", "grpc/reflection/v1alpha"}});
    google::protobuf::TextFormat::ParseFromString(text, &file);
    pool->BuildFile(file);
    return pool;
  }();
  return *descriptors;
}

// Adds the file and all that it imports, each once, importers first.
void AddFiles(const FileDescriptor& file, std::vector<const FileDescriptor*>& files) {
  if (std::find(files.begin(), files.end(), &file) != files.end()) return;
  files.push_back(&file);
  for (int i = 0; i < file.dependency_count(); ++i) AddFiles(*file.dependency(i), files);
}

// The same files, serialized and cached for each file, because that takes up to 0.2 ms.
const std::vector<std::string>& FilesFrom(const FileDescriptor& file) {
  static auto& serialized = *new std::map<const FileDescriptor*, std::vector<std::string>>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (const auto found = serialized.find(&file); found != serialized.end()) return found->second;
  std::vector<const FileDescriptor*> files;
  AddFiles(file, files);
  std::vector<std::string> result;
  for (const FileDescriptor* each : files) {
    google::protobuf::FileDescriptorProto proto;
    each->CopyTo(&proto);
    result.push_back(proto.SerializeAsString());
  }
  return serialized.emplace(&file, std::move(result)).first->second;
}

void SetError(absl::StatusCode code, std::string message, ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(static_cast<int>(code));
  response.mutable_error_response()->set_error_message(std::move(message));
}

void SetFile(const FileDescriptor* file, ServerReflectionResponse& response) {
  if (file == nullptr) {
    SetError(absl::StatusCode::kNotFound, "this server has no such file or symbol", response);
    return;
  }
  for (const std::string& bytes : FilesFrom(*file)) {
    response.mutable_file_descriptor_response()->add_file_descriptor_proto(bytes);
  }
}

const FieldDescriptor* FindExtension(const DescriptorPool& pool, const std::string& type,
                                     int number) {
  const Descriptor* const message = pool.FindMessageTypeByName(type);
  return message == nullptr ? nullptr : pool.FindExtensionByNumber(message, number);
}

void SetExtensions(const DescriptorPool& pool, const std::string& type,
                   ServerReflectionResponse& response) {
  const Descriptor* const message = pool.FindMessageTypeByName(type);
  if (message == nullptr) {
    SetError(absl::StatusCode::kNotFound, "this server has no such message", response);
    return;
  }
  response.mutable_all_extension_numbers_response()->set_base_type_name(type);
  std::vector<const FieldDescriptor*> extensions;
  pool.FindAllExtensions(message, &extensions);
  for (const FieldDescriptor* extension : extensions) {
    response.mutable_all_extension_numbers_response()->add_extension_number(extension->number());
  }
}

}  // namespace

ServerReflectionResponse Reflection::ResponseTo(const ServerReflectionRequest& request) const {
  const DescriptorPool& pool = Descriptors();
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      SetFile(pool.FindFileByName(request.file_by_filename()), response);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      SetFile(pool.FindFileContainingSymbol(request.file_containing_symbol()), response);
      break;
    case ServerReflectionRequest::kFileContainingExtension: {
      const FieldDescriptor* const extension =
          FindExtension(pool, request.file_containing_extension().containing_type(),
                        request.file_containing_extension().extension_number());
      SetFile(extension == nullptr ? nullptr : extension->file(), response);
      break;
    }
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      SetExtensions(pool, request.all_extension_numbers_of_type(), response);
      break;
    case ServerReflectionRequest::kListServices:
      response.mutable_list_services_response();
      for (const std::string& service : services_) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      SetError(absl::StatusCode::kInvalidArgument, "the request contains no question", response);
      break;
  }
  return response;
}

// Messages use many times their bytes, so they must not live until the response is sent.
std::optional<Exchange::Awaited> Reflection::Respond(Exchange& call) const {
  ServerReflectionRequest request;
  if (!call.Take(request)) return std::nullopt;
  return call.Write(ResponseTo(request));
}

Call Reflection::Serve(Calls& /*calls*/, const Reflection& reflection,
                       transport::ServerCall& stream) {
  {
    Exchange call(stream, reflection.pool_);
    for (;;) {
      const bool has_request = co_await call.Read();
      if (!has_request) break;
      std::optional<Exchange::Awaited> written = reflection.Respond(call);
      if (!written.has_value()) break;
      const bool sent = co_await *written;
      if (!sent) break;
    }
    co_await call.Finish();
  }
  stream.End();
}

}  // namespace quantd::rpc
