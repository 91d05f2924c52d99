// One connection: a socket, HTTP/2 by nghttp2, and the streams of its calls.
//
// Reading: what belongs to a large message goes from the socket to its place in the message, with
// the heads of the frames in between taken out; the rest is read into a buffer of the thread's.
// Writing: the heads of frames are copied, messages are not.
//
// Everything only on the thread that leads loop().
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
  // Takes over `fd`, a connected socket that does not block; with TLS on it if `secure`. When the
  // system has no memory left it is closed again. Lives in `set` until it is closed.
  static void Open(ConnectionSet& set, int fd, const Peer& peer, bool secure = false);

  loop::Loop& loop() const { return loop_; }
  TransportContext& context() const { return context_; }
  ConnectionSet& set() const { return set_; }
  const Peer& peer() const { return peer_; }
  const std::shared_ptr<const std::string>& peer_name() const { return peer_name_; }
  size_t streams() const { return stream_count_; }
  // Of these, the ones of which no byte of a message has come yet, as far as is known.
  size_t waiting_calls() const { return waiting_calls_; }
  // Ends the one that has waited for longest. False: there is none.
  bool EndWaitingCall();
  // When something came last.
  loop::Clock::time_point heard_at() const { return heard_at_; }

  // Asks the client to make no more calls here, and answers those that it had made before it knew,
  // also those whose first byte waits behind an upload. Only when none is left, and a ping after
  // that has brought none, the last call that is answered is named, and the connection closed.
  void GoAway();
  // Interrupts every call. What can still be sent is: `status`, or the reset that means the same.
  void EndCalls(const absl::Status& status);
  // Closes at once. The connection may be gone when it returns.
  void Close();
  // Looks at what time has done to it: a few times a second. `anyone_waits`: for what a peer that
  // does not read holds. The connection may be gone when it returns.
  void Look(loop::Clock::time_point now, bool anyone_waits);

 private:
  friend class ServerCall;
  friend struct Callbacks;

  // What is about to be sent: bytes of control_, or of a stream's message.
  struct Segment {
    ServerCall* stream;   // null: of control_
    const uint8_t* data;  // null: of control_
    size_t size;
  };
  // One of its functions, later.
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
  bool Begin();  // HTTP/2

  // For streams.
  void GrantWindow(ServerCall& stream, int64_t bytes);
  void Send(ServerCall& stream);
  // Whether the peer's windows let out all that it has to send.
  bool HasRoomFor(const ServerCall& stream) const;
  void OnResponse() { credit_.EarnMessage(); }
  void Reset(ServerCall& stream);
  // The stream is closed and none of its bytes is waiting.
  void Forget(ServerCall& stream);
  // Frees a buffer, but not while bytes that were read into it still wait to be looked at.
  void DropBuffer(memory::Buffer buffer);

  // Of the socket.
  void OnReady(uint32_t events) override;
  void Fire() override;  // the pause of a throttled connection is over
  void OnIterationEnd();
  void FlushNow();
  void FlushFromLoop();
  void BeginWriting();
  // A call has been answered, with so many bytes that are still to be sent.
  void Answered(size_t bytes);
  void ReadOn();
  bool ReadSome();
  ssize_t ReadInPlace(size_t& capacity);
  // What it reads plainly at once: less where its peer has many connections.
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

  // What the peer has caused and does not take: see connection_backlog.cc.
  size_t unsent() const;
  bool BackedUp() const;
  void HoldBack(const uint8_t* data, size_t size);
  void LetGo();
  void Charge();
  bool IsOver() const;
  bool CountField(size_t bytes);
  void EndForHeaders();
  bool LookAtBacklog(loop::Clock::time_point now);
  // Whether enough is made into frames for now.
  bool full() const;
  void AddControl(const uint8_t* data, size_t size);
  ssize_t WriteSegments(size_t& offered);
  void AfterWrite(size_t bytes);
  void WantFlush();
  void SetEvents();
  void Throttle();
  // Whether anything is read from it now.
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

  // Of TLS: nothing of HTTP/2 is said or heard before the handshake is over.
  bool handshaking() const { return tls_ != nullptr && !tls_->established(); }
  uint32_t TlsEvents() const;
  void OnHandshakeReady();
  void OnStep() override;  // a step of the handshake
  void RefuseHandshake();
  void ThrowAway();

  // Of HTTP/2.
  int OnBeginHeaders(const nghttp2_frame& frame);
  int OnHeader(const nghttp2_frame& frame, absl::string_view name, absl::string_view value);
  int OnBeginFrame(const nghttp2_frame_hd& head);
  int OnFrame(const nghttp2_frame& frame);
  int OnData(int32_t id, const uint8_t* data, size_t size);
  int OnFrameSent(const nghttp2_frame& frame);
  void OnStreamClosed(int32_t id);
  void OnCall(ServerCall& stream);
  absl::Status FindPlace(ServerCall& stream, bool watches);
  void Refuse(ServerCall& stream, const errors::CallStatus& status);
  void RefuseHttp(ServerCall& stream, int http_status);
  void Abandon(ServerCall& stream);
  void SubmitHeaders(ServerCall& stream);
  void SubmitTrailersOnly(ServerCall& stream, const errors::CallStatus& status);
  void SubmitTrailers(ServerCall& stream);
  ServerCall* Find(int32_t id) const;
  // nghttp2's question for a stream's next frame.
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
  std::unique_ptr<access::Session> tls_;  // null: plain
  nghttp2_session* session_ = nullptr;
  ServerCall* streams_ = nullptr;  // a list; newest first
  size_t stream_count_ = 0;
  size_t waiting_calls_ = 0;

  // The DATA frame that is being read.
  ServerCall* frame_stream_ = nullptr;
  size_t frame_left_ = 0;
  bool feeding_ = false;
  std::vector<memory::Buffer> dropped_;  // while feeding

  std::string control_;  // heads of frames and whole small frames
  size_t control_sent_ = 0;
  std::deque<Segment> segments_;
  size_t queued_ = 0;  // bytes of the segments
  // Of this iteration: parts of responses that were made, and bytes that were written.
  int made_ = 0;
  size_t iteration_written_ = 0;
  size_t answered_ = 0;  // calls, since it was flushed
  Later<&Connection::OnIterationEnd> flusher_{*this};
  Later<&Connection::FlushNow> prompt_flusher_{*this};
  Later<&Connection::ReadOn> reader_{*this};  // what TLS has read and nobody has seen
  bool has_grants_ = false;                   // windows that should be told at once
  bool blocked_ = false;                      // the socket takes nothing more now
  uint32_t events_ = 0;                       // what the loop watches
  bool watched_ = false;
  bool closed_ = false;
  bool handling_ = false;    // its own functions are under way
  bool peer_spoke_ = false;  // its first SETTINGS are here
  bool lingers_ = false;     // everything is said; waits for the peer to close
  size_t thrown_away_ = 0;   // bytes that came after everything was said
  bool deaf_ = false;        // and were too many: no more are read

  FrameWalk walk_;
  loop::Clock::time_point block_began_at_;  // the header block that is not whole
  uint64_t block_ = 0;                      // its number
  size_t block_decoded_ = 0;                // bytes of its fields, as RFC 9113 counts them
  bool ended_for_headers_ = false;
  bool held_back_ = false;  // not read: too much waits to be sent
  Pace held_pace_;          // of what it takes meanwhile
  uint64_t written_ = 0;    // bytes, so far
  size_t submitted_ = 0;    // bytes of header fields in nghttp2's queue, at most
  std::string kept_;        // what had been read by then
  size_t unanswered_ = 0;   // bytes read since responses were written last
  size_t charged_ = 0;      // of the backlog of all connections
  // Streams without a ServerCall: RefuseHttp's, whose text may wait for the peer's window.
  absl::flat_hash_set<int32_t> http_refusals_;

  enum class Leaving : uint8_t {
    kNo,
    kAnnounced,  // the client knows, when it has answered a ping
    kKnown,      // and finishes its calls
    kAsked,      // none is left: a last ping, in case that one was on its way
    kFinal,
  };
  Leaving leaving_ = Leaving::kNo;
  loop::Clock::time_point leave_at_;

  loop::Clock::time_point opened_at_;
  loop::Clock::time_point heard_at_;
  loop::Clock::time_point moved_at_;  // when bytes were written last, or nothing was to be written
  loop::Clock::time_point pinged_at_;
  bool pinged_ = false;

  FrameCredit credit_;
  bool throttled_ = false;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_CONNECTION_H_
