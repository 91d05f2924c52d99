// Any bytes as a request, through everything that a server does with them: decode, plan, execute,
// answer. The first byte chooses the method (or a stream's item) and where the slices end.
//
// Held to: no crash and no sanitizer's complaint; accepted exactly when protobuf's parser accepts;
// an answer that parses, within the memory that the plan said.
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "server/operations/operation.h"
#include "server/wire/answer.h"
#include "server/wire/decode.h"
#include "server/wire/status_details.h"
#include "wire_testing.h"

namespace quantd {

// How many inputs came through to an answer; see run_generated.cc.
uint64_t served_requests = 0;

namespace {

// What a server's memory budget would do; an input of a fuzzer is small, and its answer as well
// unless a shape lies.
constexpr uint64_t kBudgetBytes = uint64_t{64} << 20;

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

template <typename Response>
void RequireParses(const grpc::ByteBuffer& answer) {
  Response response;
  Require(response.ParseFromString(wire::ToString(answer)), "the answer parses");
}

template <typename Message>
bool Parses(const std::string& bytes) {
  return Message().ParseFromString(bytes);
}

bool ProtobufAccepts(int kind, const std::string& bytes) {
  switch (kind) {
    case 0:
      return Parses<v1::QuantizeRequest>(bytes);
    case 1:
      return Parses<v1::DequantizeRequest>(bytes);
    case 2:
      return Parses<v1::DynamicQuantizeRequest>(bytes);
    default:
      return Parses<v1::StreamRequest>(bytes);
  }
}

absl::Status Serve(const wire::Request& request, const uint64_t* id) {
  static const Executor* const executor = new Executor(1);
  const absl::StatusOr<operations::Operation> operation = operations::Plan(request);
  if (!operation.ok()) return operation.status();
  if (operation->memory_bytes() > kBudgetBytes) return absl::ResourceExhaustedError("budget");
  wire::Answer answer(operation->answer_layout());
  const absl::Status status =
      operation->Execute(*executor, [] { return false; }, answer.contents());
  if (!status.ok()) return status;
  const grpc::ByteBuffer bytes =
      id != nullptr ? std::move(answer).FinishItem(*id) : std::move(answer).Finish();
  Require(bytes.Length() <= wire::MaxEncodedBytes(operation->answer_layout()),
          "the answer is as long as the plan said at most");
  if (id != nullptr) {
    RequireParses<v1::StreamResponse>(bytes);
  } else if (request.method() == wire::Method::kDynamicQuantize) {
    RequireParses<v1::DynamicQuantizeResponse>(bytes);
  } else {
    RequireParses<v1::QuantizeResponse>(bytes);  // DequantizeResponse is a part of it
  }
  return absl::OkStatus();
}

bool IsMalformed(const absl::Status& status) {
  return absl::StrContains(status.message(), "the message is truncated");
}

}  // namespace
}  // namespace quantd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quantd;
  static const google::protobuf::LogSilencer silencer;
  if (size == 0) return 0;
  const int kind = data[0] % 4;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  wire::Random random(data[0] / 4);
  const wire::SliceList message(wire::Cut(bytes, random));
  absl::Status status;
  if (kind < 3) {
    const absl::StatusOr<wire::Request> request =
        wire::DecodeRequest(wire::kMethods[kind], message);
    status = request.ok() ? Serve(*request, nullptr) : request.status();
  } else {
    const wire::StreamItem item = wire::DecodeStreamItem(message);
    status = item.request.ok() ? Serve(*item.request, &item.id) : item.request.status();
    if (!status.ok()) RequireParses<v1::StreamResponse>(wire::EncodeItemError(item.id, status));
  }
  Require(ProtobufAccepts(kind, bytes) == !IsMalformed(status),
          "protobuf's parser and the scanner agree");
  const grpc::Status answer = wire::ToGrpcStatus(status);
  Require(status.ok() || !answer.error_message().empty(), "an error says what is wrong");
  switch (status.code()) {
    case absl::StatusCode::kOk:
      ++served_requests;
      return 0;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kResourceExhausted:
      return 0;
    default:
      Require(false, "a bad request is the client's fault");
      return 0;
  }
}
