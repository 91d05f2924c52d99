// One connection: a socket, HTTP/2 (nghttp2), and the streams of its calls.
//
// Reading: the bytes of a large message go from the socket to their place in the message, and the
// frame heads between them are taken out. Everything else is read into a buffer of the thread.
// Writing: frame heads are copied, messages are not.
//
// All functions must be called on the thread that leads loop().
#ifndef QUANTD_SERVER_TRANSPORT_CONNECTION_H_
#define QUANTD_SERVER_TRANSPORT_CONNECTION_H_

#include <nghttp2/nghttp2.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "server/access/session.h"
#include "server/loop/loop.h"
#include "server/transport/frame_credit.h"
#include "server/transport/frame_walk.h"
#include "server/transport/handshakes.h"
#include "server/transport/pace.h"
#include "server/transport/peer.h"
#include "server/transport/server_call.h"
#include "server/transport/transport_context.h"

namespace quantd::transport {

class ConnectionSet;

class Connection final : private loop::Watcher, private loop::Timer, private Handshakes::Waiting {
 public:
  // Takes ownership of `fd`, a connected non-blocking socket; `secure`: it uses TLS. If the system
  // is out of memory, the socket is closed. The connection lives in `set` until it is closed.
  static void Open(ConnectionSet& set, int fd, const Peer& peer, bool secure = false);

  loop::Loop& loop() const { return loop_; }
  TransportContext& context() const { return context_; }
  ConnectionSet& set() const { return set_; }
  const Peer& peer() const { return peer_; }
  const std::shared_ptr<const std::string>& peer_name() const { return peer_name_; }
  size_t streams() const { return stream_count_; }
  // When the peer last sent something.
  loop::Clock::time_point heard_at() const { return heard_at_; }

  // Asks the client to make no more calls here. Answers the calls that it made before it knew, also
  // those whose first byte waits behind an upload. Once no call is left and another ping has
  // brought none, the second GOAWAY names the last call that was answered, and the connection
  // closes.
  void GoAway();
  // Interrupts every call. Sends what can still be sent: `status`, or the reset that means the
  // same.
  void EndCalls(const absl::Status& status);
  // Closes at once. The connection may be destroyed when this returns.
  void Close();
  // Checks timeouts; called a few times a second. `anyone_waits`: whether others wait for what a
  // peer holds by not reading. The connection may be destroyed when this returns.
  void Look(loop::Clock::time_point now, bool anyone_waits);

 private:
  friend class ServerCall;
  friend struct Callbacks;

  // Bytes to send next: of control_, or of a stream's message.
  struct Segment {
    ServerCall* stream;   // null: from control_
    const uint8_t* data;  // null: from control_
    size_t size;
  };
  // Runs one of the connection's functions later.
  template <void (Connection::*function)()>
  class Later final : public loop::Posted {
   public:
    explicit Later(Connection& connection) : connection_(connection) {}
    bool posted = false;

   private:
    void Run() override { (connection_.*function)(); }
    Connection& connection_;
  };

  Connection(ConnectionSet& set, int fd, const Peer& peer);
  ~Connection();
  bool Begin();  // starts HTTP/2

  // Called by streams.
  void GrantWindow(ServerCall& stream, int64_t bytes);
  void Send(ServerCall& stream);
  // Whether the peer's windows have room for everything that the stream has to send.
  bool HasRoomFor(const ServerCall& stream) const;
  void OnResponse() { credit_.EarnMessage(); }
  void Reset(ServerCall& stream);
  // The stream is closed, and none of its bytes wait to be sent.
  void Forget(ServerCall& stream);
  // Frees a buffer, but not while bytes that were read into it have not been processed.
  void DropBuffer(memory::Buffer buffer);

  // Events of the socket.
  void OnReady(uint32_t events) override;
  void Fire() override;  // the pause of a throttled connection is over
  void OnIterationEnd();
  void FlushNow();
  void FlushFromLoop();
  void BeginWriting();
  // A call or an item of a stream was answered; `bytes` of the answer are still to be sent.
  void Answered(size_t bytes);
  void FlushNext();
  void ReadOn();
  bool ReadSome();
  ssize_t ReadInPlace(size_t& capacity);
  // The size of an ordinary read: smaller if the peer has many connections.
  size_t PlainBytes() const;
  ssize_t ReadPlain(size_t& capacity);
  ssize_t ReadPieces(absl::Span<const iovec> pieces);
  void SayAtOnce(absl::string_view text);
  bool Feed(const uint8_t* data, size_t size);
  bool FeedWatchfully(const uint8_t* data, size_t size);
  bool FeedKept();
  void Flush();
  void FlushSome();
  bool Pull();

  // Bytes that the peer has caused and does not read: see connection_backlog.cc.
  size_t unsent() const;
  bool BackedUp() const;
  void HoldBack(const uint8_t* data, size_t size);
  void LetGo();
  void Charge();
  bool IsOver() const;
  bool CountField(size_t bytes);
  void EndForHeaders();
  bool LookAtBacklog(loop::Clock::time_point now);
  // Whether enough frames have been made for now.
  bool full() const;
  void AddControl(const uint8_t* data, size_t size);
  ssize_t WriteSegments(size_t& offered);
  void AfterWrite(size_t bytes);
  void WantFlush();
  void SetEvents();
  void Throttle();
  // Whether the connection currently reads from the socket.
  bool listens() const { return !throttled_ && !held_back_ && !deaf_; }
  void ReadSoon();
  void End(ConnectionEnd why);
  void Note(ConnectionEnd why);
  void Linger();
  void MaybeDelete();
  void LookAtStreams(loop::Clock::time_point now, bool anyone_waits);
  void Leave();
  void OnPingAnswered();
  void SayFinalGoAway();

  // Whether a TLS handshake is in progress; no HTTP/2 is sent or received before it is over.
  bool handshaking() const { return tls_ != nullptr && !tls_->established(); }
  uint32_t TlsEvents() const;
  void OnHandshakeReady();
  void OnStep() override;  // a step of the handshake
  void RefuseHandshake();
  void ThrowAway();

  // Callbacks of HTTP/2.
  int OnBeginHeaders(const nghttp2_frame& frame);
  int OnHeader(const nghttp2_frame& frame, absl::string_view name, absl::string_view value);
  int OnBeginFrame(const nghttp2_frame_hd& head);
  int OnFrame(const nghttp2_frame& frame);
  int OnData(int32_t id, const uint8_t* data, size_t size);
  int OnFrameSent(const nghttp2_frame& frame);
  void OnStreamClosed(int32_t id);
  void OnCall(ServerCall& stream);
  absl::Status FindPlace(ServerCall& stream, bool watches);
  void Refuse(ServerCall& stream, const wire::CallStatus& status);
  void RefuseHttp(ServerCall& stream, int http_status);
  void Abandon(ServerCall& stream);
  void SubmitHeaders(ServerCall& stream);
  void SubmitTrailersOnly(ServerCall& stream, const wire::CallStatus& status);
  void SubmitTrailers(ServerCall& stream);
  ServerCall* Find(int32_t id) const;
  // nghttp2 asks for the next frame of a stream.
  static ssize_t WantData(nghttp2_session*, int32_t, uint8_t*, size_t length, uint32_t* flags,
                          nghttp2_data_source* source, void* user_data);
  int OnSendData(ServerCall& stream, const uint8_t* frame_head, size_t length);

  ConnectionSet& set_;
  TransportContext& context_;
  loop::Loop& loop_;
  const int fd_;
  const Peer peer_;
  const std::shared_ptr<PeerAccount> account_;
  const std::shared_ptr<const std::string> peer_name_;
  std::unique_ptr<access::Session> tls_;  // null: no TLS
  nghttp2_session* session_ = nullptr;
  ServerCall* streams_ = nullptr;  // a list; newest first
  size_t stream_count_ = 0;

  // The DATA frame that is being received.
  ServerCall* frame_stream_ = nullptr;
  size_t frame_left_ = 0;
  bool feeding_ = false;
  std::vector<memory::Buffer> dropped_;  // freed after feeding

  std::string control_;  // frame heads and whole small frames
  size_t control_sent_ = 0;
  std::deque<Segment> segments_;
  size_t queued_ = 0;  // bytes in the segments
  // In this iteration: parts of responses made, and bytes written.
  int made_ = 0;
  size_t iteration_written_ = 0;
  size_t answered_ = 0;  // calls answered since the last flush
  Later<&Connection::OnIterationEnd> flusher_{*this};
  Later<&Connection::FlushNow> prompt_flusher_{*this};
  Later<&Connection::ReadOn> reader_{*this};  // for what TLS has read and nobody has processed
  bool has_grants_ = false;                   // there are window updates to send at once
  bool blocked_ = false;                      // the socket accepts no more bytes now
  uint32_t events_ = 0;                       // what the loop watches for
  bool watched_ = false;
  bool closed_ = false;
  bool handling_ = false;    // one of its own functions is running
  bool peer_spoke_ = false;  // its first SETTINGS have arrived
  bool lingers_ = false;     // everything is sent; waits for the peer to close
  size_t thrown_away_ = 0;   // bytes received after everything was sent
  bool deaf_ = false;        // these were too many: it stops reading

  FrameWalk walk_;
  loop::Clock::time_point block_began_at_;  // of the header block that is not complete
  uint64_t block_ = 0;                      // its number
  size_t block_decoded_ = 0;                // bytes of its fields, as counted by RFC 9113
  bool ended_for_headers_ = false;
  bool held_back_ = false;  // does not read: too many bytes wait to be sent
  Pace held_pace_;          // of what the peer reads meanwhile
  uint64_t written_ = 0;    // bytes written so far
  size_t submitted_ = 0;    // bytes of header fields in nghttp2's queue, at most
  std::string kept_;        // what had been read before that
  size_t unanswered_ = 0;   // bytes read since responses were last written
  size_t charged_ = 0;      // its part of the backlog of all connections
  // Streams without a ServerCall: those of RefuseHttp, whose text may wait for the peer's window.
  absl::flat_hash_set<int32_t> http_refusals_;

  enum class Leaving : uint8_t {
    kNo,
    kAnnounced,  // the client knows it once it has answered a ping
    kKnown,      // the client knows, and finishes its calls
    kAsked,      // no call is left; a last ping, in case one is under way
    kFinal,
  };
  Leaving leaving_ = Leaving::kNo;
  loop::Clock::time_point leave_at_;

  loop::Clock::time_point opened_at_;
  loop::Clock::time_point heard_at_;
  loop::Clock::time_point moved_at_;  // when bytes were last written, or nothing was to be written
  loop::Clock::time_point pinged_at_;
  bool pinged_ = false;

  FrameCredit credit_;
  bool throttled_ = false;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_CONNECTION_H_
