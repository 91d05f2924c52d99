// Any bytes as a request, through everything that a server does with them: decode, plan, execute,
// encode. The first byte chooses the method, or a stream's item.
//
// Checked: no crash and no sanitizer's complaint; accepted exactly when protobuf's parser accepts;
// a response that parses, within the memory that was announced before the plan, and by it; the same
// y in parts.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "fuzzing.h"
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

std::string RandomInput(Random& random) {
  const uint64_t kind = Below(random, std::size(wire::kSubjects));
  const wire::Method subject = wire::kSubjects[kind];
  // Mostly one that makes sense.
  return static_cast<char>(kind) + (OneIn(random, 4) || subject == wire::Method::kStream
                                        ? wire::AnyMessage(subject, random)
                                        : wire::RandomRequest(subject, random));
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

void RequireParses(const memory::Piece& response, wire::Method method) {
  Require(response.begin >= response.buffer.data() + wire::kRoomBefore &&
              response.begin + response.size <= response.buffer.data() + response.buffer.capacity(),
          "the answer lies in its buffer, with room before it");
  Require(wire::NewMessage(*wire::DescriptorOf(method).output_type())
              ->ParseFromString(wire::ToString(response)),
          "the answer parses");
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
  const uint64_t bound = operations::MemoryBound(request);
  Require(operations::CostOf(request).time.count() >= 0, "the estimate does not overflow");
  const absl::StatusOr<operations::Operation> operation = operations::Plan(request);
  if (!operation.ok()) return operation.status();
  Require(operation->memory_bytes() <= bound, "the plan takes no more than was told before it");
  Require(wire::MaxEncodedBytes(operation->response_layout()) <= operations::ResponseBound(request),
          "the answer is no longer than was told before the plan");
  if (bound > kBudgetBytes) return absl::ResourceExhaustedError("budget");
  wire::Response response(operation->response_layout(), Pool());
  Require(response.has_memory(), "there is memory for an answer within the budget");
  std::vector<uint8_t> place;  // of y, if it is not in the response
  if (request.output.has_value()) {
    place.resize(operation->response_layout().y.bytes);
    response.contents().y = absl::MakeSpan(place);
  }
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
  RequireParses(piece, id != nullptr ? wire::Method::kStream : request.method());
  return absl::OkStatus();
}

}  // namespace
}  // namespace quantd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quantd;
  static const google::protobuf::LogSilencer silencer;
  if (size == 0) return 0;
  const wire::Method method = wire::kSubjects[data[0] % std::size(wire::kSubjects)];
  const std::vector<uint8_t> message(data + 1, data + size);
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
    RequireParses(wire::EncodeItemError(id, status, Pool()), method);
  }
  const auto parsed = wire::NewMessage(*wire::DescriptorOf(method).input_type());
  Require(parsed->ParseFromString(wire::ToString(message)) ==
              !absl::StrContains(status.message(), "the message is truncated"),
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
