// A call of small messages: it parses requests and serializes responses, in any order. Every
// service except QuantizationService is built on this:
//
//   Call ServeEcho(Calls& /*calls*/, memory::Pool& pool, transport::ServerCall& stream) {
//     {
//       Exchange call(stream, pool);
//       for (EchoRequest request;;) {
//         const bool has_request = co_await call.Read();
//         if (!has_request || !call.Take(request)) break;
//         const bool sent = co_await call.Write(ResponseTo(request));
//         if (!sent) break;
//       }
//       co_await call.Finish();
//     }
//     stream.End();
//   }
//
//   router.Add("/package.Service/Echo",
//              [&](transport::ServerCall& stream) { ServeEcho(calls, pool, stream); });
//
// A call with one request and one response is the same without the loop; calls.h has a function for
// it, which needs no coroutine.
#ifndef QUANTD_SERVER_RPC_EXCHANGE_H_
#define QUANTD_SERVER_RPC_EXCHANGE_H_

#include <google/protobuf/message_lite.h>

#include <coroutine>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/loop/event.h"
#include "server/memory/buffer.h"
#include "server/transport/server_call.h"
#include "server/wire/encode.h"

namespace quantd::rpc {

// For one call, on the thread that leads its loop. Await the result of each function before calling
// the next.
class Exchange {
 public:
  // Refers to an event: g++ 12 would copy the event itself.
  class Awaited {
   public:
    explicit Awaited(loop::Event& event) : event_(event) {}
    bool await_ready() const noexcept { return event_.ready(); }
    // Not inlined: see Event.
    [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> call) noexcept {
      return event_.await_suspend(call);
    }
    bool await_resume() const noexcept { return event_.await_resume(); }

   private:
    loop::Event& event_;
  };

  Exchange(transport::ServerCall& stream, memory::Pool& pool) : stream_(stream), pool_(pool) {}

  // Reads the next request. False: the client sends no more, or the call was interrupted.
  Awaited Read();
  // Parses the request that was read, and lets the next one in. False: it is not a valid message,
  // and the call ends with INVALID_ARGUMENT.
  bool Take(google::protobuf::MessageLite& request);
  // Whether the last request was compressed.
  bool was_compressed() const { return was_compressed_; }
  // Sends a response at once; it should be small. False: the client does not receive it.
  Awaited Write(const google::protobuf::MessageLite& response);
  // Sends a response made by wire::Serialize, or that compressed. An empty piece means that there
  // was no memory for it.
  Awaited Send(memory::Piece response, bool compressed = false);

  // Sets the call's status; the first error counts.
  void Fail(absl::Status status);
  bool ok() const { return status_.ok() && !stream_.interrupted(); }
  // Sends the status, followed by `metadata`. Call this last before the stream's End.
  Awaited Finish(transport::Metadata metadata = {});

 private:
  transport::ServerCall& stream_;
  memory::Pool& pool_;
  transport::Message message_;
  bool was_compressed_ = false;
  absl::Status status_;
  loop::Event event_;
};

// Returns INVALID_ARGUMENT if the bytes are not a valid message.
inline absl::Status Parse(const transport::Message& from, google::protobuf::MessageLite& message) {
  if (message.ParseFromArray(from.buffer.data(), static_cast<int>(from.size))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("the message is truncated or not a " + message.GetTypeName());
}

// Bytes to send; an empty piece: there was no memory for them.
static_assert(wire::kRoomBefore >= transport::kPrefixBytes);
inline memory::Piece ToPiece(absl::string_view bytes, memory::Pool& pool) {
  memory::Piece piece = wire::MakePiece(bytes.size(), pool);
  if (piece.begin != nullptr) std::memcpy(piece.begin, bytes.data(), bytes.size());
  return piece;
}

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_EXCHANGE_H_
