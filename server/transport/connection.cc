#include "server/transport/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "absl/strings/string_view.h"

namespace quantd::transport {
namespace {

using loop::Clock;

// A connection without a call has stood still for longer than those that have had one.
constexpr std::chrono::hours kNeverUsed{1};

// The most unsent bytes of a connection in the kernel, because this memory is not counted anywhere.
constexpr int kUnsentBytes = 512 << 10;

// The most bytes that a connection reads before other connections get a turn.
constexpr size_t kReadPerIteration = 256 << 10;
// After this many bytes, calls that can continue do so before more is read.
constexpr size_t kEnoughRead = 64 << 10;
// Bytes fed to HTTP/2 before its output is checked; less if the socket takes nothing.
constexpr size_t kFeedBytes = 4 << 10;
constexpr size_t kFeedBytesBlocked = 512;
// Remaining parts of frames of this size are read in place, with so many bytes of what follows: a
// short read shows the end of the input.
constexpr size_t kInPlaceFrom = 8 << 10;
constexpr size_t kBehindPlace = 1 << 10;

// The most bytes that a connection writes before other connections get a turn.
constexpr size_t kWritePerIteration = 1 << 20;
constexpr size_t kMostSegments = 128;                             // in one write
static_assert(Http2::kPullBytes + (64 << 10) <= kMostMadeAhead);  // a frame may exceed it
// Once small responses to a third of the calls are ready, they are sent without waiting for the
// others. Sending each on its own uses more CPU with many calls in flight; waiting for half of them
// makes four calls of 4 bytes slower. With few calls, larger responses count as small, too: four
// Dequantize of 64 KiB reached 0.77 of the echo's rate instead of 0.97.
constexpr size_t kThird = 3;
constexpr size_t kSmallResponse = 64 << 10;
constexpr size_t kFewCalls = 8;
constexpr size_t kSmallOfFew = 512 << 10;

// A browser or curl connected by mistake: answer in HTTP/1.1.
constexpr absl::string_view kOnlyHttp2 =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 46\r\n"
    "Connection: close\r\n\r\nThis port speaks gRPC, which is HTTP/2 only.\r\n";
// Also for clients of HTTP/2. A GOAWAY would be in their protocol, but it follows a SETTINGS frame,
// after which gRPC considers the connection established: unsent calls would go to another
// connection at once, 60 a second until their deadline. This text makes the attempt fail, and gRPC
// waits.
constexpr absl::string_view kOnlyTls =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 48\r\n"
    "Connection: close\r\n\r\nThis port speaks gRPC over TLS, not plain text.\n";

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

// The buffer for ordinary reads: one per thread, used within one function.
std::array<uint8_t, FlowControl::kPlainBytes>& Plain() {
  thread_local std::array<uint8_t, FlowControl::kPlainBytes> bytes;
  return bytes;
}

}  // namespace

// ---- From its begin to its end

Connection::Connection(ConnectionSet& set, int fd, net::Peer peer, bool secure)
    : Holder(set.loop(), peer.id, Clock::now() - kNeverUsed),
      set_(set),
      context_(set.context()),
      loop_(set.loop()),
      fd_(fd),
      secure_(secure),
      peer_(std::make_shared<const net::Peer>(std::move(peer))),
      flow_(context_, *this, Clock::now()),
      life_(context_.limits, Clock::now()),
      http2_(*this, flow_.credit()) {}

bool Connection::Open(ConnectionSet& set, int fd, net::Peer peer, bool secure) {
  SetOptions(fd);
  TransportContext& context = set.context();
  auto* const connection = new (std::nothrow) Connection(set, fd, std::move(peer), secure);
  if (connection == nullptr) {
    close(fd);
    return false;
  }
  // Before it has a place, which another thread may take from it.
  connection->starter_.posted = true;
  set.Expect();
  if (context.connections.Take(connection->place_, *connection, 1)) {
    set.loop().Post(connection->starter_);
    return true;
  }
  set.Missed();
  delete connection;
  close(fd);
  return false;
}

void Connection::Handle(absl::FunctionRef<void()> function) {
  if (!closed_) {
    handling_ = true;
    try {
      function();
    } catch (const std::bad_alloc&) {
      Close();
    }
    handling_ = false;
  }
  MaybeDelete();
}

void Connection::Start() {
  set_.Add(*this);
  if (secure_) {
    tls_ = access::Session::Accept(*context_.certificates, access::Protocol::kGrpc, fd_);
  }
  SetEvents();
  // The server waits for the client's first bytes: a client of another protocol is answered in that
  // one.
  const auto window = static_cast<uint32_t>(context_.receiving.window());
  if (!watched_ || (secure_ && tls_ == nullptr) ||
      !http2_.Begin(context_.limits.max_streams, window)) {
    Close();
  } else if (context_.draining) {
    GoAway();
  }
}

void Connection::GoAway() {
  if (!closed_) Take(life_.Leave(loop_.now()));
}

void Connection::EndCalls(const absl::Status& status) {
  for (auto at = calls_.begin(); at != calls_.end();) (*at++)->Interrupt(status);
}

void Connection::Take(const Lifetime::Step& step) {
  switch (step.what) {
    case Lifetime::Do::kNothing:
      return;
    case Lifetime::Do::kAnnounce:
      http2_.Announce();
      return http2_.Ping();
    case Lifetime::Do::kPing:
      return http2_.Ping();
    case Lifetime::Do::kGoAway:
      return http2_.GoAway();
    case Lifetime::Do::kClose:
      return Close();
    case Lifetime::Do::kEnd:
      return End(step.why);
  }
}

void Connection::Look(Clock::time_point now, bool anyone_waits) {
  Handle([&] {
    const Lifetime::Step step =
        life_.Look(now, {calls_.size(), handshaking(), flow_.throttled(), blocked_, anyone_waits});
    if (step.what == Lifetime::Do::kEnd && handshaking() && !life_.lingers()) {
      NoteRefusedHandshake("it was not finished within 10 s", peer_->name);
    }
    if (step.what == Lifetime::Do::kAnnounce) Note(ConnectionEnd::kAge);
    Take(step);
    if (closed_) return;
    if (const auto why = flow_.Look(now, http2_.walk())) return End(*why);
    for (auto at = calls_.begin(); at != calls_.end();) {
      ServerCall& call = **at++;
      Moved(std::min(call.still_since(), now));
      call.Look(now, anyone_waits);
    }
    // Texts that wait for a window would keep the connection open.
    if (life_.left()) http2_.ResetRefusals();
    Charge();
  });
}

// Everything is sent.
void Connection::Linger() {
  life_.Linger(loop_.now());
  if (tls_ != nullptr) tls_->SayEnd();
  shutdown(fd_, SHUT_WR);
}

void Connection::OnDisplaced() {
  if (closed_) return MaybeDelete();
  if (!place_.lost()) return End(ConnectionEnd::kUnread);
  NoteAbuse(context_.counters, AbuseAction::kConnectionEvicted, peer_->name);
  context_.counters.CountEnd(ConnectionEnd::kTooMany);
  Close();
}

void Connection::End(ConnectionEnd why) {
  if (!closed_) Note(why);
  Close();
}

void Connection::Note(ConnectionEnd why) {
  context_.counters.CountEnd(why);
  NoteConnectionEnd(why, peer_->name);
}

void Connection::Close() {
  if (std::exchange(closed_, true)) return;
  flow_.Close();
  loop_.timers().Clear(*this);
  if (tls_ != nullptr) {
    set_.handshakes().Drop(*this);
    if (!life_.lingers() && !blocked_) tls_->SayEnd();
  }
  if (watched_) loop_.Unwatch(fd_);
  close(fd_);
  place_.Give();
  set_.Remove(*this);
  http2_.Drop();
  for (ServerCall* const call : std::exchange(calls_, {})) call->OnConnectionClosed();
  MaybeDelete();
}

void Connection::MaybeDelete() {
  const bool posted =
      starter_.posted || flusher_.posted || prompt_flusher_.posted || reader_.posted || displaced();
  if (closed_ && !handling_ && !posted) delete this;
}

bool Connection::CloseIfBlocked() {
  if (blocked_) End(ConnectionEnd::kStalled);
  return blocked_;
}

void Connection::OnRequest(int32_t id, Head&& head) {
  auto* const call =
      new ServerCall({*this, http2_, context_, loop_, set_.inflater(), peer_}, id, std::move(head));
  calls_.insert(call);
  Moved(loop_.now());
  call->Begin();
}

void Connection::Forget(ServerCall& call) {
  calls_.erase(&call);
  if (!closed_ && calls_.empty()) Take(life_.OnNoCall(loop_.now()));
}

void Connection::Charge() {
  if (!flow_.Charge(http2_.unsent(), http2_.refusals(), http2_.walk(), blocked_)) {
    End(ConnectionEnd::kUnread);
  }
}

// ---- Reading

void Connection::SetEvents() {
  const bool listens = flow_.may_read();
  const uint32_t wanted =
      (tls_ != nullptr ? TlsEvents() : (listens ? EPOLLIN : 0U) | (blocked_ ? EPOLLOUT : 0U)) |
      // If the connection is not read, notice that the peer is gone, unless calls are open.
      (!listens && calls_.empty() ? EPOLLRDHUP : 0U);
  if (watched_ && wanted == events_) return;
  events_ = wanted;
  if (watched_) {
    loop_.Rewatch(fd_, wanted, *this);
  } else {
    watched_ = loop_.Watch(fd_, wanted, *this);
  }
}

void Connection::OnReady(uint32_t events) {
  Handle([&] { React(events); });
}

void Connection::React(uint32_t events) {
  if (handshaking()) return OnHandshakeReady();
  // TLS may wait for another direction than the one that was asked for.
  const bool crossed_write = tls_ != nullptr && tls_->write_wants_read();
  if (crossed_write && (events & EPOLLIN) != 0) events |= EPOLLOUT;
  if (tls_ != nullptr && tls_->read_wants_write() && (events & EPOLLOUT) != 0) events |= EPOLLIN;
  if ((events & EPOLLOUT) != 0) {
    blocked_ = false;
    BeginWriting();
    Flush();
    if (!closed_) SetEvents();
  }
  if (!closed_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && flow_.may_read()) {
    Read();
  } else if (!closed_ && (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) {
    Close();  // the peer has gone while the connection was not read
  }
  if (!closed_) Charge();
}

void Connection::Read() {
  if (ReadSome()) {
    WantFlush();
  } else {
    Close();
  }
}

// Returns false if the connection is over.
bool Connection::ReadSome() {
  size_t total = 0;
  while (total < kReadPerIteration && !closed_ && flow_.may_read()) {
    if (!flow_.kept().empty() && !FeedKept()) break;
    size_t capacity = 0;
    const ssize_t count = ReadOnce(capacity);
    const bool again = count < 0 && (errno == EAGAIN || errno == EINTR);
    if (count <= 0 && !again) return false;
    if (count > 0) {
      life_.Heard(loop_.now());
      if (closed_) return false;
      total += static_cast<size_t>(count);
      if (flow_.Received(static_cast<size_t>(count), IsOver())) SetEvents();
    }
    if (tls_ != nullptr) flow_.credit().Spend(tls_->TakeCrumbs());
    if (const auto pause = flow_.Throttle()) {
      // Stops reading for a while: the peer's data waits in its own socket.
      NoteAbuse(context_.counters, AbuseAction::kConnectionThrottled, peer_->name);
      SetEvents();
      loop_.timers().Set(*this, loop_.now() + *pause);
      return true;
    }
    if (again || static_cast<size_t>(count) < capacity) break;
    if (total >= std::min(kEnoughRead, flow_.read_size()) && loop_.has_ready()) break;
  }
  if (tls_ != nullptr) {
    SetEvents();
    ReadSoon();
  }
  return true;
}

void Connection::Fire() {
  flow_.EndPause(Clock::now());
  SetEvents();
  ReadSoon();
}

// Reads later what is no longer in the socket, which the socket therefore does not report.
void Connection::ReadSoon() {
  const bool more = !flow_.kept().empty() || (tls_ != nullptr && tls_->more_to_read());
  if (more && flow_.may_read() && !std::exchange(reader_.posted, true)) {
    loop_.AtIterationEnd(reader_);
  }
}

// Reads the rest of a large message's frame to its place in the message, and what follows.
ssize_t Connection::ReadOnce(size_t& capacity) {
  auto& plain = Plain();
  absl::Span<uint8_t> place;
  if (const Stream* const stream = http2_.frame_stream()) {
    place = stream->Place().first(std::min(stream->Place().size(), http2_.frame_left()));
  }
  const bool in_place = place.size() >= kInPlaceFrom;
  place = place.first(in_place ? std::min(place.size(), kReadPerIteration) : 0);
  const std::array<iovec, 2> pieces = {
      {{place.data(), place.size()}, {plain.data(), in_place ? kBehindPlace : flow_.read_size()}}};
  capacity = place.size() + pieces[1].iov_len;
  const ssize_t count = tls_ != nullptr
                            ? tls_->Read(pieces)
                            : readv(fd_, pieces.data(), static_cast<int>(pieces.size()));
  if (count <= 0 || life_.lingers()) return count;
  const size_t first = std::min(place.size(), static_cast<size_t>(count));
  if (first == 0 || Feed(place.data(), first)) {
    FeedWatchfully(plain.data(), static_cast<size_t>(count) - first);
  }
  return count;
}

// Returns false if the connection is closed.
bool Connection::Feed(const uint8_t* data, size_t size) {
  const Http2::Fed fed = http2_.Feed(data, size);
  if (fed == Http2::Fed::kNotHttp2) SayAtOnce(kOnlyHttp2);
  if (fed != Http2::Fed::kOk) End(ConnectionEnd::kProtocolError);
  return !closed_;
}

// Feeds HTTP/2 in small amounts, and sends the resulting output. Keeps the rest of the input if the
// peer does not read.
void Connection::FeedWatchfully(const uint8_t* data, size_t size) {
  while (size != 0 && !closed_) {
    if (BackedUp()) Flush();
    if (closed_) return;
    if (BackedUp()) {
      flow_.HoldBack(data, size, loop_.now());
      return SetEvents();
    }
    const size_t piece = std::min(size, blocked_ ? kFeedBytesBlocked : kFeedBytes);
    Feed(data, piece);
    data += piece;
    size -= piece;
  }
}

// Returns false if the connection is over, or held back again.
bool Connection::FeedKept() {
  if (flow_.held_back()) return false;
  const std::string kept = flow_.TakeKept();
  FeedWatchfully(reinterpret_cast<const uint8_t*>(kept.data()), kept.size());
  return !closed_ && !flow_.held_back();
}

// ---- Writing

void Connection::WantFlush() {
  if (flusher_.posted || filling_ || blocked_ || closed_) return;
  flusher_.posted = true;
  loop_.AtIterationEnd(flusher_);
}

// The peer works on these responses while the others are computed. Otherwise the peer would wait
// for all of them, and then the server for its next requests: each would be idle half of the time,
// and four calls at a time were half as fast.
void Connection::Answered(size_t bytes) {
  ++answered_;
  const size_t small = calls_.size() <= kFewCalls ? kSmallOfFew : kSmallResponse;
  if (bytes > small || kThird * answered_ < calls_.size() || blocked_ || closed_) return;
  if (!std::exchange(prompt_flusher_.posted, true)) loop_.PostNext(prompt_flusher_);
}

void Connection::BeginWriting() {
  http2_.BeginWriting();
  iteration_written_ = 0;
}

void Connection::FlushAtEnd() {
  BeginWriting();
  FlushNow();
}

void Connection::FlushNow() {
  Flush();
  if (!closed_) Charge();
}

void Connection::Flush() {
  FlushSome();
  if (closed_ || !flow_.LetGo(http2_.unsent(), calls_.size())) return;
  SetEvents();
  ReadSoon();
}

void Connection::FlushSome() {
  if (handshaking()) return;
  answered_ = 0;
  while (!closed_) {
    filling_ = true;
    const bool filled = http2_.Fill();
    filling_ = false;
    if (!filled) return End(ConnectionEnd::kProtocolError);
    if (http2_.empty() && !http2_.made_enough()) break;
    if (http2_.empty() || iteration_written_ >= kWritePerIteration) {
      // Other connections first; the loop does not wait while this is posted.
      return WantFlush();
    }
    size_t offered = 0;
    const ssize_t count = WritePieces(offered);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return Close();
    const size_t written = count < 0 ? 0 : static_cast<size_t>(count);
    if (written != 0) {
      iteration_written_ += written;
      life_.Wrote(loop_.now());
      flow_.Wrote(written, loop_.now());
      http2_.Wrote(written);
    }
    // A socket that takes only a part is full. TLS may have other reasons.
    if (written == 0 || (tls_ == nullptr && written < offered)) {
      blocked_ = true;
      if (!closed_) SetEvents();
      return;
    }
  }
  life_.Wrote(loop_.now());
  if (!closed_ && !life_.lingers() && http2_.over()) Linger();
}

ssize_t Connection::WritePieces(size_t& offered) {
  std::array<iovec, kMostSegments> pieces;
  const size_t count = http2_.Pieces(absl::MakeSpan(pieces));
  for (size_t i = 0; i < count; ++i) offered += pieces[i].iov_len;
  if (tls_ != nullptr) return tls_->Write({pieces.data(), count});
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  return sendmsg(fd_, &message, MSG_NOSIGNAL);
}

// A last text for a client that can't be told in frames.
void Connection::SayAtOnce(absl::string_view text) {
  if (tls_ != nullptr && tls_->established()) {
    const iovec piece{const_cast<char*>(text.data()), text.size()};
    tls_->Write({&piece, 1});
  } else {
    [[maybe_unused]] const ssize_t sent = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
  }
}

// ---- TLS

uint32_t Connection::TlsEvents() const {
  if (handshaking()) {
    if (life_.lingers()) return EPOLLIN;
    if (queued()) return 0;  // its turn comes soon, whatever happens
    return tls_->wants_write() ? EPOLLOUT : EPOLLIN;
  }
  const bool listens = flow_.may_read();
  const bool writes =
      (blocked_ && !tls_->write_wants_read()) || (listens && tls_->read_wants_write());
  // A write that waits for the peer's bytes must read them, even if the connection is not read
  // otherwise.
  const bool reads = listens || (blocked_ && tls_->write_wants_read());
  return (reads ? EPOLLIN : 0U) | (writes ? EPOLLOUT : 0U);
}

void Connection::OnHandshakeReady() {
  if (life_.lingers()) return ThrowAway();
  if (queued()) return;
  set_.handshakes().Push(*this, peer_->id);
  SetEvents();
}

void Connection::OnStep() {
  Handle([this] { MakeStep(); });
}

void Connection::MakeStep() {
  switch (tls_->Handshake()) {
    case access::Session::Step::kAgain:
      return SetEvents();
    case access::Session::Step::kGone:
      return Close();
    case access::Session::Step::kRefused:
      return RefuseHandshake();
    case access::Session::Step::kDone:
      life_.Heard(loop_.now());
      SetEvents();
      Read();  // its first frames may have come with the last bytes of the handshake
  }
}

// An alert has told the client; a client without TLS is told in plain text. The connection lingers,
// as after a GOAWAY, so that this arrives.
void Connection::RefuseHandshake() {
  const auto refusal = static_cast<size_t>(tls_->refusal());
  context_.counters.refused_handshakes[refusal].fetch_add(1, std::memory_order_relaxed);
  context_.counters.CountEnd(ConnectionEnd::kTls);
  NoteRefusedHandshake(tls_->reason(), peer_->name);
  if (tls_->plain_text()) SayAtOnce(kOnlyTls);
  life_.Linger(loop_.now());
  shutdown(fd_, SHUT_WR);
  SetEvents();
}

// Discards what a refused client still sends.
void Connection::ThrowAway() {
  std::array<char, 16 << 10> bytes;
  const ssize_t count = recv(fd_, bytes.data(), bytes.size(), 0);
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) Close();
}

}  // namespace quantd::transport
