// One call on the wire: an HTTP/2 stream that carries gRPC messages.
//
//   stream.Read(message, read);                    // a whole message, in one piece
//   const bool has_message = co_await read;  // false: the client sends no more, or interrupted
//   stream.Write({std::move(buffer), begin, size}, written);
//   stream.Finish(status, finished);               // trailers
//   const bool sent = co_await finished;
//   stream.End();                                  // the call is over; the stream may be gone
//
// A message is | compressed: 1 byte, 0 or 1 | length: 4 bytes, big endian | its bytes |.
// Its memory is reserved when the length has arrived (admission/receiving.h), and the bytes are
// read from the socket directly into it.
//
// Except for interrupted(), use it only on the thread that leads loop(). Events complete there,
// too.
#ifndef QUANTD_SERVER_TRANSPORT_SERVER_CALL_H_
#define QUANTD_SERVER_TRANSPORT_SERVER_CALL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/admission/receiving.h"
#include "server/loop/event.h"
#include "server/loop/loop.h"
#include "server/loop/timers.h"
#include "server/memory/buffer.h"
#include "server/net/peer_name.h"
#include "server/scheduling/places.h"
#include "server/transport/head.h"
#include "server/transport/http2.h"
#include "server/transport/inflater.h"
#include "server/transport/transport_context.h"
#include "server/wire/call_status.h"

namespace quantd::transport {

// A received message.
struct Message {
  memory::Buffer buffer;
  size_t size = 0;
  bool was_compressed = false;

  absl::Span<const uint8_t> bytes() const { return {buffer.data(), size}; }
};

// gRPC's prefix of each message. A message to send needs this much room before its first byte.
inline constexpr size_t kPrefixBytes = 5;

// For a message that is made while it is sent: the next part is made only if at most this many
// bytes of earlier parts are in frames that the kernel does not have yet.
inline constexpr size_t kMostMadeAhead = 576 << 10;

// Makes a message while it is sent.
class MessageSource {
 public:
  // Makes the next part, in memory that is freed once the kernel has it: the next part is likely to
  // use the same memory, which is still in the cache. An empty piece: it failed and has interrupted
  // the stream. Called on the thread that leads the stream's loop.
  virtual memory::Piece MakeMore() = 0;

 protected:
  ~MessageSource() = default;
};

// Something that a call waits for elsewhere, and that can be cancelled to wake the call.
class Cancellable {
 public:
  virtual void Cancel() = 0;

 protected:
  ~Cancellable() = default;
};

class ServerCall;

// What a call needs of its connection, besides the codec.
class Carrier {
 public:
  // The call has written a message, which earns credit.
  virtual void OnMessage() = 0;
  // The call, or an item of a stream, was answered; `bytes` of the answer are still to be sent.
  virtual void Answered(size_t bytes) = 0;
  // Closes the connection if its socket takes nothing. Returns whether it does.
  virtual bool CloseIfBlocked() = 0;
  // The call is over for the connection: it is closed, and none of its bytes wait to be sent.
  virtual void Forget(ServerCall& call) = 0;

 protected:
  ~Carrier() = default;
};

// Where a call lives. The first two are gone once the call is over for its connection.
struct CallSite {
  Carrier& carrier;
  Http2& http2;
  TransportContext& context;
  loop::Loop& loop;
  Inflater& inflater;
  std::shared_ptr<const net::Peer> peer;
};

class ServerCall final : public scheduling::Holder,
                         private Stream,
                         private admission::Upload,
                         private Inflating,
                         private loop::Timer {
 public:
  loop::Loop& loop() const { return loop_; }
  // The HTTP/2 stream id.
  int32_t id() const { return id_; }
  // The caller, for the log: see Peer.
  const std::string& peer_name() const { return peer_->name; }
  const Head& head() const { return head_; }
  int method() const { return method_; }  // the result of CallHandler::Find
  loop::Clock::time_point arrived_at() const { return arrived_at_; }
  // When the length of the latest message arrived.
  loop::Clock::time_point message_began_at() const { return message_began_at_; }

  // Reads the next message into `message`, then completes `read` with true. REQUIRES: no other read
  // is in progress. The message's memory counts as being received until Taken.
  void Read(Message& message, loop::Event& read);
  // The call has its own memory for the message that it has read; the next message may come in.
  void Taken();

  // Metadata that is sent before the first message. REQUIRES: nothing was written.
  void SetInitialMetadata(Metadata metadata) { initial_metadata_ = std::move(metadata); }
  // Sets the compression of messages. REQUIRES: the head accepts it; nothing was written.
  void SetEncoding(Encoding encoding) { out_encoding_ = encoding; }
  Encoding out_encoding() const { return out_encoding_; }

  // Sends a message, and completes `written` when the kernel has all of it; for a small message at
  // once, as long as few wait, because they are sent together. REQUIRES: the previous write has
  // completed; not finished; kPrefixBytes of room before the message; `compressed` only after
  // SetEncoding.
  void Write(memory::Piece message, loop::Event& written, bool compressed = false);
  // Sends a message of `size` bytes that starts with `begin`. `source` makes the rest while the
  // peer reads, until `written` completes. REQUIRES: as for Write; more than 4 KiB; it is the
  // call's only message.
  void WriteAsMade(memory::Piece begin, size_t size, MessageSource& source, loop::Event& written);
  // Sends the status after everything written, and completes `finished` when the stream is closed:
  // with true if all was sent. An interrupted stream sends what is still possible.
  void Finish(const wire::CallStatus& status, loop::Event& finished);
  // The call makes no more use of the stream. Must be its last function call.
  void End();

  // Whether the call should stop: the client cancelled it or is gone, its deadline has passed, or
  // the transport gave it up. Safe from any thread.
  bool interrupted() const { return interrupted_.load(std::memory_order_acquire); }
  // The reason. REQUIRES: interrupted().
  const absl::Status& interruption() const { return interruption_; }
  // Interrupts the call with `status`: completes its read with false and cancels what it waits for.
  // Does nothing if it is interrupted already.
  void Interrupt(absl::Status status);
  // What Interrupt cancels; may be nullptr.
  void WaitsFor(Cancellable* cancellable) { waits_for_ = cancellable; }

  // The following are for the call's connection. The call deletes itself once it is over for both.

  ServerCall(const CallSite& site, int32_t id, Head head);
  // The headers are complete: starts the call after HTTP/2 has processed all bytes that have
  // arrived, or refuses it.
  void Begin();
  // Gives up a message that has waited for room for too long, and a response that the peer does not
  // read while others wait for its memory. Called a few times a second.
  void Look(loop::Clock::time_point now, bool anyone_waits);
  // Nothing more of it will be sent.
  void OnConnectionClosed();

 private:
  // Starts the call after HTTP/2 has processed all bytes that have arrived.
  class Starter final : public loop::Posted {
   public:
    explicit Starter(ServerCall& stream) : stream_(stream) {}

   private:
    void Run() override { stream_.Start(); }
    ServerCall& stream_;
  };

  ~ServerCall() = default;

  absl::Status TakePlace(bool watches);
  void Abandon();
  void Start();

  // Receiving: Stream's.
  void OnFrame(size_t bytes) override;
  void OnData(const uint8_t* data, size_t size) override;
  absl::Span<uint8_t> Place() const override;
  void OnPadding(int64_t window) override;
  void OnRemoteEnd() override;
  void OnClosed() override;
  void CheckRemoteEnd();
  void BeginMessage();
  bool MakeRoom();
  void AskForMore();
  void AskInTime();
  void GrantFirstWindow();
  void GrantWindow(int64_t wanted);
  void Append(const uint8_t* data, size_t size);
  size_t Consume(const uint8_t* data, size_t size, size_t& left);
  int64_t Allowed() const;
  void Keep(const uint8_t* data, size_t size);
  void DropKept();
  void MessageComplete();
  void Inflate();
  void CompleteRead(bool ok);
  void WaitedTooLong();
  void OnRoom() override;
  void OnDisplaced() override;
  void MovedBytes(size_t bytes);
  void OnInflated(const absl::Status& status, memory::Buffer buffer, size_t size) override;
  void Fire() override;  // the deadline has passed

  // Sending: Stream's.
  Offer NextFrame(size_t most) override;
  const uint8_t* Pull(size_t size) override;
  void Sent(size_t size) override;
  void OnEndSent() override { trailers_sent_ = true; }

  bool sending() const { return out_.begin != nullptr; }
  // Whether nothing follows what is being pulled, for now.
  bool nothing_behind() const {
    return batch_.empty() && next_out_.begin == nullptr && unmade_ == 0;
  }
  // Whether only the trailers are left.
  bool nothing_left() const { return finishing_ && unpulled() == 0 && nothing_behind(); }
  size_t unpulled() const { return out_.size - unmade_ - pulled_; }
  size_t unsent() const { return unpulled() + unmade_ + batch_.size() + next_out_.size; }
  // Whether the peer's windows have room for everything that is to be sent.
  bool HasRoom() const {
    return unsent() == 0 || static_cast<int64_t>(unsent()) <= http2_.Room(id_);
  }
  // Whether the call was interrupted and has finished: it must end without waiting for its peer.
  bool ends() const { return finishing_ && interrupted() && !cut_off_ && !http_closed_; }
  void Send();
  void SendTrailers();
  // Makes the next part of the message if that is needed. Returns whether it has.
  bool MakeMore();
  void StartNext();
  void SendFromOwnBytes();
  // Nothing more of the response is sent.
  void CutOff();
  void DropUnsent();
  void GiveUpResponse();
  void MaybeClosed();
  void CompleteFinish();
  void MaybeDelete();

  Carrier* carrier_;  // null once the connection is gone
  Http2& http2_;      // gone with it
  TransportContext& context_;
  loop::Loop& loop_;
  admission::Receiving& receiving_;
  Inflater& inflater_;
  const int32_t id_;
  const std::shared_ptr<const net::Peer> peer_;  // outlives the connection
  int method_ = -1;
  Head head_;
  loop::Clock::time_point arrived_at_;
  loop::Clock::time_point message_began_at_;

  // The message that is being received.
  enum class Incoming : uint8_t { kPrefix, kBody, kCompressed, kComplete, kRead };
  Incoming incoming_ = Incoming::kPrefix;
  uint8_t prefix_have_ = 0;
  uint8_t prefix_[kPrefixBytes] = {};
  // Of total_ bytes, or of the first window until there is more room.
  memory::Buffer buffer_;
  size_t total_ = 0;
  uint64_t charge_ = 0;  // bytes reserved: total_, plus what it may inflate to
  size_t received_ = 0;
  std::string kept_;              // what came after a message that has not been taken yet
  scheduling::Place kept_place_;  // its memory
  size_t kept_left_ = 0;          // the bytes at its end that are not processed yet
  int64_t window_ = 0;            // bytes that the peer may still send in further frames
  int64_t for_padding_ = 0;       // granted beyond a message, once the peer has padded a frame
  size_t frame_left_ = 0;         // bytes of this frame that have not been processed
  bool remote_end_ = false;
  bool waits_for_room_ = false;
  loop::Clock::time_point waits_since_;
  Message* read_into_ = nullptr;
  loop::Event* read_ = nullptr;

  Metadata initial_metadata_;
  Encoding out_encoding_ = Encoding::kIdentity;
  // What is being sent: a message, then a batch of small ones, then at most one more message.
  memory::Piece out_;
  std::string batch_;       // small messages with their prefixes
  std::string batch_sent_;  // the bytes of out_ if they are a batch or not in a buffer
  memory::Piece next_out_;
  // A part of out_ that source_ has made, and its end in the message.
  struct Part {
    memory::Buffer buffer;
    size_t end;
  };
  std::vector<Part> parts_;  // parts that the kernel does not have yet
  size_t unmade_ = 0;        // bytes of out_ that source_ has not made yet
  MessageSource* source_ = nullptr;
  const uint8_t* next_byte_ = nullptr;  // the first byte that is in no frame
  size_t pulled_ = 0;                   // bytes of out_ in frames, gRPC's prefix included
  size_t offered_ = 0;                  // bytes after those, in a frame that nghttp2 holds
  size_t sent_ = 0;                     // bytes of out_ that the kernel has
  scheduling::Pace pace_;               // of the bytes that the kernel takes
  loop::Event* written_ = nullptr;
  wire::CallStatus finish_;
  loop::Event* finished_ = nullptr;
  bool finishing_ = false;
  bool headers_sent_ = false;
  bool trailers_submitted_ = false;
  bool trailers_sent_ = false;
  bool cut_off_ = false;

  absl::Status interruption_;
  std::atomic<bool> interrupted_{false};
  Cancellable* waits_for_ = nullptr;
  bool http_closed_ = false;  // HTTP/2 has closed the stream
  bool closed_ = false;       // closed, and no byte of it waits to be sent
  bool has_call_ = false;     // a call uses the stream and has not called End
  scheduling::Place place_;   // among the calls, or the watches
  Starter starter_{*this};
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_SERVER_CALL_H_
