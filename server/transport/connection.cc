// See connection.h. This file opens, ages and ends a connection; connection_reading.cc
// has the socket, connection_http2.cc the protocol.
#include "server/transport/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "server/transport/connection_set.h"
#include "server/transport/notes.h"
#include "server/wire/call_status.h"

namespace quantd::transport {
namespace {

using loop::Clock;

// The most unsent bytes of a connection in the kernel, because this memory is not counted anywhere.
constexpr int kUnsentBytes = 512 << 10;

constexpr std::chrono::seconds kHandshake{10};
constexpr std::chrono::seconds kLinger{1};

void SetOptions(int fd) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
  if (domain == AF_UNIX) {
    // The kernel doubles it, after its own limit. With its default, 208 KiB, Dequantize of 1 MiB
    // has 0.7 of the rate (`quantd_bench table --filter="Dequantize unix 1 MiB x 1"`).
    const int bytes = kUnsentBytes / 2;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    return;
  }
  const int yes = 1;
  const int unsent = kUnsentBytes;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
}

}  // namespace

Connection::Connection(ConnectionSet& set, int fd, const Peer& peer)
    : set_(set),
      context_(set.context()),
      loop_(set.loop()),
      fd_(fd),
      peer_(peer),
      account_(peer.account != nullptr ? peer.account : std::make_shared<PeerAccount>()),
      peer_name_(std::make_shared<const std::string>(peer_.name)),
      opened_at_(loop_.now()),
      heard_at_(opened_at_),
      moved_at_(opened_at_),
      credit_(opened_at_) {
  account_->connections.fetch_add(1, std::memory_order_relaxed);
}

Connection::~Connection() {
  account_->connections.fetch_sub(1, std::memory_order_relaxed);
  nghttp2_session_del(session_);
}

void Connection::Open(ConnectionSet& set, int fd, const Peer& peer, bool secure) {
  SetOptions(fd);
  auto* const connection = new (std::nothrow) Connection(set, fd, peer);
  if (connection == nullptr) {
    close(fd);
    set.Missed(peer);
    return;
  }
  set.Add(*connection);
  set.context().counters.connections.fetch_add(1, std::memory_order_relaxed);
  if (secure) {
    connection->tls_ =
        access::Session::Accept(*set.context().certificates, access::Protocol::kGrpc, fd);
  }
  connection->SetEvents();
  // The server waits for the client's first bytes: a client of another protocol is answered in that
  // one.
  if (!connection->watched_ || (secure && connection->tls_ == nullptr) || !connection->Begin()) {
    connection->Close();
  } else if (set.context().draining) {
    connection->GoAway();
  }
}

void Connection::GoAway() {
  if (leaving_ != Leaving::kNo || closed_) return;
  leaving_ = Leaving::kAnnounced;
  leave_at_ = loop_.now();
  nghttp2_submit_shutdown_notice(session_);
  nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
  WantFlush();
}

void Connection::OnPingAnswered() {
  if (leaving_ == Leaving::kAnnounced) {
    leaving_ = Leaving::kKnown;
    Leave();
  } else if (leaving_ == Leaving::kAsked) {
    leaving_ = Leaving::kKnown;
    if (stream_count_ == 0) SayFinalGoAway();
  }
}

// Takes the next step of leaving, if it is time for it.
void Connection::Leave() {
  if (leaving_ != Leaving::kKnown || stream_count_ != 0) return;
  leaving_ = Leaving::kAsked;
  leave_at_ = loop_.now();
  nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
  WantFlush();
}

void Connection::SayFinalGoAway() {
  leaving_ = Leaving::kFinal;
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                        nullptr, 0);
  WantFlush();
}

void Connection::EndCalls(const absl::Status& status) {
  for (ServerCall* stream = streams_; stream != nullptr;) {
    ServerCall* const next = stream->next_;
    stream->Interrupt(status);
    stream = next;
  }
}

// Everything is sent. If the connection were closed now with unread input, the kernel would discard
// what the peer has not read yet. So only this direction is closed first.
void Connection::Linger() {
  lingers_ = true;
  leave_at_ = loop_.now();
  if (tls_ != nullptr) tls_->SayEnd();
  shutdown(fd_, SHUT_WR);
}

void Connection::End(ConnectionEnd why) {
  if (!closed_) Note(why);
  Close();
}

void Connection::Note(ConnectionEnd why) {
  context_.counters.CountEnd(why);
  NoteConnectionEnd(why, peer_.name);
}

void Connection::Close() {
  if (std::exchange(closed_, true)) return;
  if (throttled_) context_.counters.throttled_now.fetch_sub(1);
  const auto charged = static_cast<int64_t>(std::exchange(charged_, 0));
  context_.counters.backlog.fetch_sub(charged, std::memory_order_relaxed);
  account_->backlog.fetch_sub(charged, std::memory_order_relaxed);
  loop_.timers().Clear(*this);
  if (tls_ != nullptr) {
    set_.handshakes().Drop(*this);
    if (!lingers_ && !blocked_) tls_->SayEnd();
  }
  if (watched_) loop_.Unwatch(fd_);
  close(fd_);
  context_.counters.connections.fetch_sub(1, std::memory_order_relaxed);
  set_.Remove(*this);
  segments_.clear();
  while (streams_ != nullptr) {
    ServerCall& stream = *streams_;
    stream.sent_ = stream.pulled_;  // nothing more of it will be sent
    stream.OnClosed();
  }
  MaybeDelete();
}

void Connection::MaybeDelete() {
  const bool posted = flusher_.posted || prompt_flusher_.posted || reader_.posted;
  if (closed_ && !handling_ && !posted) delete this;
}

void Connection::Look(Clock::time_point now, bool anyone_waits) {
  const Limits& limits = context_.limits;
  if (!throttled_) credit_.Refill(now, std::max<int64_t>(context_.counters.throttled_now, 1));
  if (!peer_spoke_ && now - opened_at_ > kHandshake) {
    if (handshaking() && !lingers_)
      NoteRefusedHandshake("it was not finished within 10 s", peer_.name);
    return End(ConnectionEnd::kNoHandshake);
  }
  // The handshake has not ended, so the client can't be told.
  if (handshaking() && leaving_ == Leaving::kFinal) return Close();
  if (lingers_ && now - leave_at_ > kLinger) return Close();
  if (!throttled_ && !pinged_ && now - heard_at_ > limits.keepalive) {
    pinged_ = true;
    pinged_at_ = now;
    nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
    WantFlush();
  }
  if (pinged_ && now - pinged_at_ > limits.keepalive / 3) return End(ConnectionEnd::kSilent);
  if (blocked_ && anyone_waits && now - moved_at_ > limits.stall)
    return End(ConnectionEnd::kStalled);
  if (!LookAtBacklog(now)) return;
  LookAtStreams(now, anyone_waits);
  if (leaving_ == Leaving::kFinal && !http_refusals_.empty()) {
    // Texts that wait for a window would keep the connection open.
    for (const int32_t id : std::exchange(http_refusals_, {})) {
      nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    }
    WantFlush();
  }
  const bool asked = leaving_ == Leaving::kAnnounced || leaving_ == Leaving::kAsked;
  if (asked && stream_count_ == 0 && now - leave_at_ > limits.leave_timeout) {
    SayFinalGoAway();
  }
  if (limits.max_connection_age.count() > 0) {
    if (leaving_ == Leaving::kNo && now - opened_at_ > limits.max_connection_age) {
      Note(ConnectionEnd::kAge);
      GoAway();
    } else if (leaving_ != Leaving::kNo &&
               now - opened_at_ > limits.max_connection_age + limits.max_connection_age_grace) {
      Close();
    }
  }
}

// Gives up a message that has waited for room for too long,
// and a response that the peer's window blocks while others wait for its memory.
void Connection::LookAtStreams(Clock::time_point now, bool anyone_waits) {
  const Limits& limits = context_.limits;
  for (ServerCall* stream = streams_; stream != nullptr;) {
    ServerCall* const next = stream->next_;
    if (stream->waits_for_room_ && now - stream->waits_since_ > limits.queue_timeout) {
      stream->WaitedTooLong();
    } else if (stream->sending() && !stream->cut_off_ &&
               stream->pace_.TooSlow(now, stream->all_sent_, limits.min_rate, limits.stall) &&
               anyone_waits) {
      NoteAbuse(context_.counters, AbuseAction::kAnswerStalled, peer_.name);
      stream->Interrupt(
          absl::CancelledError("the client read its response too slowly while others waited"));
      stream->CutOff();  // also a call that was interrupted before, and could not say so
    } else if (stream->ends() && !HasRoomFor(*stream)) {
      // There was room when it ended; another stream has taken it.
      stream->DropUnsent();
      Send(*stream);
    }
    stream = next;
  }
}

}  // namespace quantd::transport
