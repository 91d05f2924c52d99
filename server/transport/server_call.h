// One call on the wire: an HTTP/2 stream with gRPC's messages in it.
//
//   stream.Read(message, read);                    // a whole message, in one piece
//   const bool has_message = co_await read;  // false: the client sends no more, or Interrupted
//   stream.Write({std::move(buffer), begin, size}, written);
//   stream.Finish(status, finished);               // trailers
//   const bool sent = co_await finished;
//   stream.End();                                  // the call is over; the stream may be gone
//
// A message is | compressed: 1 byte, 0 or 1 | length: 4 bytes, big endian | its bytes |.
// Its memory is set aside when the length is here (admission/receiving.h), and the socket is read
// into it in place.
//
// Everything but interrupted() only on the thread that leads loop(). Events complete there, too.
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
#include "server/errors/call_status.h"
#include "server/loop/event.h"
#include "server/loop/loop.h"
#include "server/loop/timers.h"
#include "server/memory/buffer.h"
#include "server/transport/head.h"
#include "server/transport/inflater.h"
#include "server/transport/pace.h"

namespace quantd::transport {

class Connection;

// A message that has come.
struct Message {
  memory::Buffer buffer;
  size_t size = 0;
  bool was_compressed = false;

  absl::Span<const uint8_t> bytes() const { return {buffer.data(), size}; }
};

// gRPC's own bytes before each message. A message to send needs as much room before its begin.
inline constexpr size_t kPrefixBytes = 5;

// Of a message that is made while it is sent: more is asked for only while so many bytes at most of
// what was made are on their way to the kernel, in frames.
inline constexpr size_t kMostMadeAhead = 576 << 10;

// Makes a message while it is sent.
class MessageSource {
 public:
  // Makes its next part, in memory that is freed when the kernel has it: the next part is likely
  // made in the same, which the cache still holds. An empty piece: it can't, and has interrupted
  // the stream. On the thread that leads the stream's loop.
  virtual memory::Piece MakeMore() = 0;

 protected:
  ~MessageSource() = default;
};

// Sees a message while it comes.
class MessageWatcher {
 public:
  // The message has `size` bytes, of which these are here. They may lie elsewhere the next time. On
  // the thread that leads the stream's loop; not told of every byte, and of no compressed message.
  virtual void OnMore(absl::Span<const uint8_t> so_far, size_t size) = 0;

 protected:
  ~MessageWatcher() = default;
};

// What a call waits for elsewhere, so that it can be woken when there is no use in waiting.
class Cancellable {
 public:
  virtual void Cancel() = 0;

 protected:
  ~Cancellable() = default;
};

class ServerCall final : private admission::Upload, private Inflating, private loop::Timer {
 public:
  loop::Loop& loop() const { return loop_; }
  // HTTP/2's number of it, on its connection.
  int32_t id() const { return id_; }
  // Whose turn it is when peers take turns.
  uint64_t peer() const { return peer_; }
  // Who calls, for the log: see Peer.
  const std::string& peer_name() const { return *peer_name_; }
  const Head& head() const { return head_; }
  int method() const { return method_; }  // what CallHandler::Find said
  loop::Clock::time_point arrived_at() const { return arrived_at_; }
  // When the length of the message that was read last was here.
  loop::Clock::time_point message_began_at() const { return message_began_at_; }

  // Completes `read` with true when the next message is in `message`. REQUIRES: no other read is
  // under way. The memory of what has been read counts as being received until Taken. `watcher`
  // sees what comes until then; null: nobody.
  void Read(Message& message, loop::Event& read, MessageWatcher* watcher = nullptr);
  // The call has memory of its own for the message that it has read; the next one may come in.
  void Taken();

  // What goes before the first message, beside gRPC's own headers. REQUIRES: nothing was written.
  void SetInitialMetadata(Metadata metadata) { initial_metadata_ = std::move(metadata); }
  // Messages may be compressed so. REQUIRES: what the head accepts; nothing was written.
  void SetEncoding(Encoding encoding) { out_encoding_ = encoding; }
  Encoding out_encoding() const { return out_encoding_; }

  // Sends a message, and completes `written` when the kernel has all of it; of a small one at once,
  // as long as few wait here: they are sent together. REQUIRES: the write before it has completed,
  // not finished; kPrefixBytes of room before the message; `compressed` as SetEncoding says.
  void Write(memory::Piece message, loop::Event& written, bool compressed = false);
  // Sends a message of `size` bytes that begins so. `source` makes the rest, as the peer takes it,
  // until `written` completes. REQUIRES: as Write; more than 4 KiB; nothing is written before it
  // or behind it.
  void WriteAsMade(memory::Piece begin, size_t size, MessageSource& source, loop::Event& written);
  // Sends the status after what is being written, and completes `finished` when the stream is
  // closed: with true if all was sent. An interrupted stream sends what is still possible.
  void Finish(const errors::CallStatus& status, loop::Event& finished);
  // The last thing that a call does with it.
  void End();

  // Whether the call need not go on: the client cancelled it or is gone, its deadline passed, or
  // the transport gave it up. From any thread.
  bool interrupted() const { return interrupted_.load(std::memory_order_acquire); }
  // Why. REQUIRES: interrupted().
  const absl::Status& interruption() const { return interruption_; }
  // Ends the call with `status`: completes its read with false and cancels what it waits for. Does
  // nothing when it is interrupted already.
  void Interrupt(absl::Status status);
  // What to cancel then; nullptr: nothing.
  void WaitsFor(Cancellable* cancellable) { waits_for_ = cancellable; }

 private:
  friend class Connection;

  // Starts the call when HTTP/2 has been told all that came.
  class Starter final : public loop::Posted {
   public:
    explicit Starter(ServerCall& stream) : stream_(stream) {}

   private:
    void Run() override { stream_.Start(); }
    ServerCall& stream_;
  };

  ServerCall(Connection& connection, int32_t id);
  ~ServerCall() = default;

  // Receiving: told by the connection.
  void Begin(int method);
  void Start();
  void OnFrame(size_t bytes, bool is_last);
  void OnData(const uint8_t* data, size_t size);
  void OnPadding(int64_t window);
  void OnRemoteEnd();
  void CheckRemoteEnd();
  void OnClosed();
  // Where the next bytes of the message belong, if its memory is there; else empty.
  absl::Span<uint8_t> Place() const;
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
  void OnGivenUp() override;
  void OnInflated(const absl::Status& status, memory::Buffer buffer, size_t size) override;
  void Fire() override;  // the deadline

  // Sending: asked by the connection.
  bool sending() const { return out_.begin != nullptr; }
  // Whether what is being pulled is the last there is for now.
  bool nothing_behind() const {
    return batch_.empty() && next_out_.begin == nullptr && unmade_ == 0;
  }
  size_t unpulled() const { return out_.size - unmade_ - pulled_; }
  size_t unsent() const { return unpulled() + unmade_ + batch_.size() + next_out_.size; }
  // Whether it has said all, and is to end without waiting for its peer.
  bool ends() const { return finishing_ && interrupted() && !cut_off_ && !http_closed_; }
  // Has more made, if that is what is missing. Returns whether there is more.
  bool MakeMore();
  // The next bytes, for a frame that was offered. REQUIRES: size <= unpulled().
  const uint8_t* Pull(size_t size);
  void StartNext();
  void SendFromOwnBytes();
  // Whether not a byte of its first message, or of the next one, is here.
  bool WaitsForRequest() const {
    return read_ != nullptr && incoming_ == Incoming::kPrefix && prefix_have_ == 0 &&
           !interrupted();
  }
  // Nothing more is sent of its response.
  void CutOff();
  void DropUnsent();
  void Sent(size_t bytes);
  void MaybeClosed();
  void CompleteFinish();
  void MaybeDelete();

  Connection* connection_;  // null when it is gone
  loop::Loop& loop_;
  admission::Receiving& receiving_;
  memory::Pool& pool_;
  Inflater& inflater_;
  const int32_t id_;
  const uint64_t peer_;
  const std::shared_ptr<const std::string> peer_name_;  // the connection may be gone
  int method_ = -1;
  Head head_;
  loop::Clock::time_point arrived_at_;
  loop::Clock::time_point message_began_at_;
  ServerCall* previous_ = nullptr;  // of the connection's streams
  ServerCall* next_ = nullptr;

  // The message that is coming in.
  enum class Incoming : uint8_t { kPrefix, kBody, kCompressed, kComplete, kRead };
  Incoming incoming_ = Incoming::kPrefix;
  uint8_t prefix_have_ = 0;
  uint8_t prefix_[kPrefixBytes] = {};
  memory::Buffer buffer_;  // of capacity total_, or of the first window as long as it has no more
  size_t total_ = 0;
  uint64_t charge_ = 0;  // what is set aside for it: total_, and what it may become
  size_t received_ = 0;
  std::string kept_;         // what came after a message that nobody has taken yet
  size_t kept_left_ = 0;     // of these, the bytes that are not done with: the last ones
  int64_t window_ = 0;       // bytes that the peer may still send, in further frames
  int64_t for_padding_ = 0;  // granted beyond a message, once the peer has padded a frame
  size_t frame_left_ = 0;    // bytes of this one that have not been looked at
  size_t frame_bytes_ = 0;   // of the last DATA frame: the next one is likely as large
  bool remote_end_ = false;
  bool waits_for_room_ = false;
  loop::Clock::time_point waits_since_;
  Message* read_into_ = nullptr;
  loop::Event* read_ = nullptr;
  MessageWatcher* watcher_ = nullptr;  // of what is read

  Metadata initial_metadata_;
  Encoding out_encoding_ = Encoding::kIdentity;
  // What is going out: a message, then small ones together, then at most one more message.
  memory::Piece out_;
  std::string batch_;       // small messages, with their prefixes
  std::string batch_sent_;  // what out_ is in, when it was a batch or is in no buffer
  memory::Piece next_out_;
  // A part of out_ that source_ has made, and where it ends in the message.
  struct Part {
    memory::Buffer buffer;
    size_t end;
  };
  std::vector<Part> parts_;  // that the kernel does not have yet
  size_t unmade_ = 0;        // bytes of out_ that source_ has not made yet
  MessageSource* source_ = nullptr;
  const uint8_t* next_byte_ = nullptr;  // the first one that is in no frame
  size_t pulled_ = 0;                   // bytes that frames were made of, gRPC's prefix included
  size_t offered_ = 0;                  // behind them, of a frame that nghttp2 holds
  size_t sent_ = 0;                     // of these, bytes that the kernel has
  Pace pace_;                           // of these
  uint64_t all_sent_ = 0;               // of all messages, for it
  loop::Event* written_ = nullptr;
  errors::CallStatus finish_;
  loop::Event* finished_ = nullptr;
  bool finishing_ = false;
  bool headers_sent_ = false;
  bool trailers_submitted_ = false;
  bool trailers_sent_ = false;
  bool cut_off_ = false;

  absl::Status interruption_;
  std::atomic<bool> interrupted_{false};
  Cancellable* waits_for_ = nullptr;
  bool http_closed_ = false;  // HTTP/2 has forgotten it
  bool closed_ = false;       // and no byte of it is waiting to be sent
  bool has_call_ = false;     // one that has not said End
  bool watches_ = false;      // is counted among these, not among calls
  Starter starter_{*this};
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_SERVER_CALL_H_
