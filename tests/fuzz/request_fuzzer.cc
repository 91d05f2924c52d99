// Any bytes as a request, through everything that a server does with them: decode, plan, execute,
// encode. The first byte chooses the method, or a stream's item.
//
// Checked: no crash and no sanitizer's complaint; accepted exactly when protobuf's parser accepts;
// a response that parses, within the memory that was announced before the plan, and by it; the same
// y in parts.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "fuzzing.h"
#include "message_generator.h"
#include "request_generator.h"
#include "server/memory/buffer.h"
#include "server/operations/costs.h"
#include "server/operations/memory.h"
#include "server/operations/operation.h"
#include "server/wire/decode.h"
#include "server/wire/encode.h"
#include "server/wire/split.h"
#include "server/wire/status_details.h"

namespace quantd {
namespace fuzz {

uint64_t useful_inputs = 0;

// The methods, and a stream's item.
constexpr int kItem = wire::kOperations;
constexpr int kKinds = kItem + 1;

std::string RandomInput(Random& random) {
  const uint64_t kind = Below(random, kKinds);
  std::string message;
  if (OneIn(random, 8)) {
    const google::protobuf::Descriptor* const types[] = {
        v1::QuantizeRequest::descriptor(), v1::DequantizeRequest::descriptor(),
        v1::DynamicQuantizeRequest::descriptor(), v1::QuantizeEmbeddingsRequest::descriptor(),
        v1::StreamRequest::descriptor()};
    message = wire::RandomMessage(*types[kind], random);
  } else if (kind < wire::kOperations) {
    message = wire::RandomRequest(wire::kMethods[kind].method, random);
  } else {
    do {  // of two operations in one item the last one counts
      const wire::Method method = wire::kMethods[Below(random, wire::kOperations)].method;
      const std::string request = wire::RandomRequest(method, random);
      message += wire::MakeItem(random(), method, request).SerializeAsString();
    } while (OneIn(random, 4));
  }
  if (OneIn(random, 4)) message = wire::Mutate(std::move(message), random);
  return static_cast<char>(kind + kKinds * Below(random, 256 / kKinds)) + message;
}

}  // namespace fuzz

namespace {

using fuzz::Require;

// The limit of a server's memory budget; an input of a fuzzer is small, and so is its response
// unless a shape lies.
constexpr uint64_t kBudgetBytes = uint64_t{64} << 20;

memory::Pool& Pool() {
  static auto* const pool = new memory::Pool;
  return *pool;
}

template <typename Response>
void RequireParses(const memory::Piece& response) {
  Require(response.begin >= response.buffer.data() + wire::kRoomBefore &&
              response.begin + response.size <= response.buffer.data() + response.buffer.capacity(),
          "the answer lies in its buffer, with room before it");
  Response parsed;
  Require(parsed.ParseFromString(wire::ToString(response)), "the answer parses");
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
    case 3:
      return Parses<v1::QuantizeEmbeddingsRequest>(bytes);
    default:
      return Parses<v1::StreamRequest>(bytes);
  }
}

const Executor& OneThread() {
  static const Executor* const executor = new Executor(1);
  return *executor;
}

// Makes y of a served request in parts, as large ones are made.
void RequireSameInParts(const wire::Request& request, const absl::Status& served,
                        const wire::ResponseContents& wanted) {
  absl::StatusOr<operations::Operation> operation = operations::Plan(request);
  wire::Response response(operation->response_layout(), Pool());
  wire::ResponseContents& contents = response.contents();
  Require(served.ok(), "what can be made in parts cannot fail");
  const int64_t all = operation->elements();
  for (int64_t begin = 0, end = 0; begin < all; begin = end) {
    end = std::min(all, begin + operations::kElementsStep);
    const size_t from = ByteSize(operation->output_type(), begin);
    const size_t to = ByteSize(operation->output_type(), end);
    Require(operation->ExecuteElements(begin, end, OneThread(), contents.y.subspan(from, to - from))
                .ok(),
            "a part can be made");
  }
  Require(contents.y == wanted.y, "the parts are the whole");
}

absl::Status Serve(const wire::Request& request, const uint64_t* id) {
  static auto* const costs = new operations::Costs;
  const uint64_t bound = operations::MemoryBound(request);
  Require(costs->Estimate(operations::KindOf(request)).count() > 0, "it takes some time");
  const absl::StatusOr<operations::Operation> operation = operations::Plan(request);
  if (!operation.ok()) return operation.status();
  Require(operation->memory_bytes() <= bound, "the plan takes no more than was told before it");
  Require(wire::MaxEncodedBytes(operation->response_layout()) <= operations::ResponseBound(request),
          "the answer is no longer than was told before the plan");
  if (bound > kBudgetBytes) return absl::ResourceExhaustedError("budget");
  wire::Response response(operation->response_layout(), Pool());
  Require(response.has_memory(), "there is memory for an answer within the budget");
  const absl::Status status =
      operation->Execute(OneThread(), [] { return false; }, response.contents());
  if (operations::HasElements(request) && request.shared.empty() && !request.output.has_value()) {
    RequireSameInParts(request, status, response.contents());
  }
  if (!status.ok()) return status;
  const memory::Piece piece =
      id != nullptr ? std::move(response).FinishItem(*id) : std::move(response).Finish();
  Require(piece.size <= wire::MaxEncodedBytes(operation->response_layout()),
          "the answer is as long as the plan said at most");
  if (id != nullptr) {
    RequireParses<v1::StreamResponse>(piece);
  } else if (request.method() == wire::Method::kDynamicQuantize) {
    RequireParses<v1::DynamicQuantizeResponse>(piece);
  } else if (request.method() == wire::Method::kQuantizeEmbeddings) {
    RequireParses<v1::QuantizeEmbeddingsResponse>(piece);
  } else {
    RequireParses<v1::QuantizeResponse>(piece);  // DequantizeResponse is a part of it
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
  const int kind = data[0] % fuzz::kKinds;
  const std::vector<uint8_t> message(data + 1, data + size);
  const wire::Method method =
      kind == fuzz::kItem ? wire::Method::kStream : wire::kMethods[kind].method;
  Require(wire::DecodeMemoryBytes(wire::RestOf(method, message)) >=
              wire::SplitRequest(method, message).skeleton.size(),
          "what is copied is told before");
  const bool is_item = method == wire::Method::kStream;
  const uint64_t id = wire::RestOf(method, message).id;
  const absl::StatusOr<wire::Request> request = wire::DecodeRequest(method, message);
  Require(!request.ok() || is_item || request->method() == method, "the request is of its method");
  const absl::Status status =
      request.ok() ? Serve(*request, is_item ? &id : nullptr) : request.status();
  if (is_item && !status.ok()) {
    RequireParses<v1::StreamResponse>(wire::EncodeItemError(id, status, Pool()));
  }
  const std::string bytes = wire::ToString(message);
  Require(ProtobufAccepts(kind, bytes) == !IsMalformed(status),
          "protobuf's parser and the scanner agree");
  const wire::CallStatus response = wire::ToCallStatus(status);
  Require(response.code == static_cast<int>(status.code()), "the code is the status's");
  Require(status.ok() || !response.message.empty(), "an error says what is wrong");
  switch (status.code()) {
    case absl::StatusCode::kOk:
      ++fuzz::useful_inputs;
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
