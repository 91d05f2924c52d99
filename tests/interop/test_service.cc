#include "test_service.h"

#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpc/testing/empty.pb.h"
#include "grpc/testing/messages.pb.h"
#include "server/loop/timers.h"
#include "server/rpc/exchange.h"
#include "server/transport/encoding.h"
#include "server/wire/encode.h"

namespace quantd::interop {
namespace {

using grpc::testing::EchoStatus;
using grpc::testing::Empty;
using grpc::testing::Payload;
using grpc::testing::PayloadType;
using grpc::testing::ResponseParameters;
using grpc::testing::SimpleRequest;
using grpc::testing::SimpleResponse;
using grpc::testing::StreamingInputCallRequest;
using grpc::testing::StreamingInputCallResponse;
using grpc::testing::StreamingOutputCallRequest;
using grpc::testing::StreamingOutputCallResponse;
using rpc::Exchange;

constexpr char kInitial[] = "x-grpc-test-echo-initial";
constexpr char kTrailing[] = "x-grpc-test-echo-trailing-bin";

transport::Metadata Of(const transport::ServerCall& stream, const char* name) {
  transport::Metadata found;
  for (const auto& pair : stream.head().metadata()) {
    if (pair.first == name) found.push_back(pair);
  }
  return found;
}

absl::Status ToStatus(const EchoStatus& status) {
  return {static_cast<absl::StatusCode>(status.code()), status.message()};
}

// An error if a request was not compressed or uncompressed as its client expects.
template <typename Request>
absl::Status CheckCompression(const Request& request, const Exchange& call) {
  if (!request.has_expect_compressed() ||
      request.expect_compressed().value() == call.was_compressed()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(call.was_compressed() ? "the message was compressed"
                                                          : "the message was not compressed");
}

absl::Status Fill(PayloadType type, int32_t size, Payload& payload) {
  if (type != PayloadType::COMPRESSABLE) {
    return absl::InvalidArgumentError(absl::StrCat("there is no payload type ", type));
  }
  if (size < 0) return absl::InvalidArgumentError(absl::StrCat("a payload of ", size, " bytes"));
  payload.set_type(type);
  payload.set_body(std::string(static_cast<size_t>(size), '\0'));
  return absl::OkStatus();
}

// Responses may be compressed. REQUIRES: none has been sent.
void MayCompress(transport::ServerCall& stream) {
  stream.SetEncoding(stream.head().accepts().best());
}

// Sends a response, compressed if `compress`, the client accepts it and it gets smaller.
Exchange::Awaited Write(const google::protobuf::MessageLite& response, bool compress,
                        memory::Pool& pool, const transport::ServerCall& stream, Exchange& call) {
  memory::Piece piece = wire::Serialize(response, pool);
  const transport::Encoding encoding = stream.out_encoding();
  memory::Piece smaller;
  if (compress && encoding != transport::Encoding::kIdentity && piece.begin != nullptr) {
    smaller = transport::Deflate(encoding, {piece.begin, piece.size}, transport::Contents::kNumbers,
                                 transport::kPrefixBytes, pool,
                                 [&stream] { return stream.interrupted(); });
  }
  compress = smaller.begin != nullptr;
  return call.Send(std::move(compress ? smaller : piece), compress);
}

// Sleeps until the time is over or the call is interrupted.
class Sleep final : private loop::Timer, private transport::Cancellable {
 public:
  explicit Sleep(transport::ServerCall& stream) : stream_(stream) {}

  Exchange::Awaited For(std::chrono::microseconds time) {
    over_.Reset();
    if (stream_.interrupted() || time.count() <= 0) {
      over_.Complete(true);
    } else {
      stream_.WaitsFor(this);
      stream_.loop().timers().Set(*this, loop::Clock::now() + time);
    }
    return Exchange::Awaited(over_);
  }

 private:
  void Fire() override {
    stream_.WaitsFor(nullptr);
    over_.Complete(true);
  }
  void Cancel() override {
    stream_.loop().timers().Clear(*this);
    stream_.loop().Complete(over_, false);
  }

  transport::ServerCall& stream_;
  loop::Event over_;
};

rpc::Call EmptyCall(rpc::Calls& /*calls*/, memory::Pool& pool, transport::ServerCall& stream) {
  {
    Exchange call(stream, pool);
    Empty request;
    const bool has_request = co_await call.Read();
    if (!has_request) call.Fail(absl::InvalidArgumentError("the call has no request"));
    if (has_request && call.Take(request)) {
      co_await call.Write(Empty());
    }
    co_await call.Finish();
  }
  stream.End();
}

rpc::Call UnaryCall(rpc::Calls& /*calls*/, memory::Pool& pool, transport::ServerCall& stream) {
  {
    Exchange call(stream, pool);
    SimpleRequest request;
    SimpleResponse response;
    const bool has_request = co_await call.Read();
    if (!has_request) call.Fail(absl::InvalidArgumentError("the call has no request"));
    if (has_request && call.Take(request)) {
      call.Fail(CheckCompression(request, call));
      call.Fail(ToStatus(request.response_status()));
      call.Fail(
          Fill(request.response_type(), request.response_size(), *response.mutable_payload()));
      if (request.fill_server_id()) response.set_server_id(absl::StrCat("quantd-", getpid()));
    }
    stream.SetInitialMetadata(Of(stream, kInitial));
    MayCompress(stream);
    if (call.ok()) {
      co_await Write(response, request.response_compressed().value(), pool, stream, call);
    }
    co_await call.Finish(Of(stream, kTrailing));
  }
  stream.End();
}

rpc::Call StreamingInputCall(rpc::Calls& /*calls*/, memory::Pool& pool,
                             transport::ServerCall& stream) {
  {
    Exchange call(stream, pool);
    StreamingInputCallResponse response;
    int32_t size = 0;
    for (StreamingInputCallRequest request;;) {
      const bool has_request = co_await call.Read();
      if (!has_request || !call.Take(request)) break;
      call.Fail(CheckCompression(request, call));
      if (!call.ok()) break;
      size += static_cast<int32_t>(request.payload().body().size());
    }
    response.set_aggregated_payload_size(size);
    if (call.ok()) {
      co_await call.Write(response);
    }
    co_await call.Finish();
  }
  stream.End();
}

// StreamingOutputCall and FullDuplexCall: each request is answered when it arrives.
rpc::Call OutputCall(rpc::Calls& /*calls*/, memory::Pool& pool, transport::ServerCall& stream) {
  {
    Exchange call(stream, pool);
    Sleep sleep(stream);
    stream.SetInitialMetadata(Of(stream, kInitial));
    MayCompress(stream);
    StreamingOutputCallResponse response;
    while (call.ok()) {
      StreamingOutputCallRequest request;
      const bool has_request = co_await call.Read();
      if (!has_request || !call.Take(request)) break;
      call.Fail(ToStatus(request.response_status()));
      for (const ResponseParameters& parameters : request.response_parameters()) {
        call.Fail(Fill(request.response_type(), parameters.size(), *response.mutable_payload()));
        if (!call.ok()) break;
        co_await sleep.For(std::chrono::microseconds(parameters.interval_us()));
        const bool compress = parameters.compressed().value();
        const bool sent = co_await Write(response, compress, pool, stream, call);
        if (!sent) break;
      }
    }
    co_await call.Finish(Of(stream, kTrailing));
  }
  stream.End();
}

}  // namespace

void AddTestService(rpc::Router& router, rpc::Calls& calls, memory::Pool& pool) {
  router.Keep(kInitial);
  router.Keep(kTrailing);
  const auto add = [&](const char* name, auto call) {
    const std::string path = absl::StrCat("/grpc.testing.TestService/", name);
    // Counted as Stream, whose requests may be of any size.
    router.Add(
        path, [&calls, &pool, call](transport::ServerCall& stream) { call(calls, pool, stream); },
        wire::Method::kStream);
  };
  add("EmptyCall", EmptyCall);
  add("UnaryCall", UnaryCall);
  add("StreamingInputCall", StreamingInputCall);
  add("StreamingOutputCall", OutputCall);
  add("FullDuplexCall", OutputCall);
}

}  // namespace quantd::interop
