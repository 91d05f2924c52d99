// See connection.h. Here: the socket, and the end of a connection. HTTP/2 is in connection_http2.cc.
#include "server/transport/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "server/errors/reason.h"
#include "server/transport/connection_set.h"

namespace quantd::transport {
namespace {

using loop::Clock;

// What a connection may read, and write, before it is another one's turn.
constexpr size_t kReadAtATurn = 256 << 10;
constexpr size_t kWriteAtATurn = 1 << 20;
// Read at once, beyond what goes to its place.
constexpr size_t kPlainBytes = 64 << 10;
// Made into frames before they are written.
constexpr size_t kPullBytes = 256 << 10;
// Rests of messages that are worth a place of their own in a read.
constexpr size_t kInPlaceFrom = 16 << 10;
constexpr int kMostPieces = 64;
constexpr size_t kFrameHead = 9;
// Unsent bytes that the kernel keeps of a connection: more would be memory that nobody counts.
constexpr int kUnsentBytes = 512 << 10;

constexpr std::chrono::seconds kHandshake{10};
constexpr std::chrono::seconds kLinger{1};
constexpr std::chrono::seconds kAnnounce{1};

// What is read plainly: one buffer a thread, used up within one function.
std::array<uint8_t, kPlainBytes + kMostPieces * kFrameHead>& Plain() {
  thread_local std::array<uint8_t, kPlainBytes + kMostPieces * kFrameHead> bytes;
  return bytes;
}

// The first `size` bytes of the pieces, in one.
void CopyPieces(absl::Span<const iovec> pieces, size_t size, std::vector<uint8_t>& copied) {
  copied.reserve(size);
  for (const iovec& piece : pieces) {
    const auto* const begin = static_cast<const uint8_t*>(piece.iov_base);
    const size_t taken = std::min(size - copied.size(), piece.iov_len);
    copied.insert(copied.end(), begin, begin + taken);
  }
}

}  // namespace

Connection::Connection(ConnectionSet& set, int fd, Peer peer)
    : set_(set),
      shared_(set.shared()),
      loop_(set.loop()),
      fd_(fd),
      peer_(std::move(peer)),
      opened_at_(loop_.now()),
      heard_at_(opened_at_),
      moved_at_(opened_at_),
      credit_(opened_at_) {}

Connection::~Connection() { nghttp2_session_del(session_); }

void Connection::Open(ConnectionSet& set, int fd, Peer peer) {
  const int yes = 1;
  const int unsent = kUnsentBytes;
  // On a Unix socket these fail, and mean nothing.
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
  auto* const connection = new (std::nothrow) Connection(set, fd, std::move(peer));
  if (connection == nullptr) {
    close(fd);
    set.Missed(peer);
    return;
  }
  set.Add(*connection);
  set.shared().counters.connections.fetch_add(1, std::memory_order_relaxed);
  connection->SetEvents();
  // Our first words wait for the client's: who speaks another language is answered in that.
  if (!connection->watched_ || !connection->Begin()) {
    connection->Close();
  } else if (set.shared().draining) {
    connection->GoAway();
  }
}

// ---- The socket's events

void Connection::SetEvents() {
  const uint32_t wanted = (throttled_ ? 0U : EPOLLIN) | (blocked_ ? EPOLLOUT : 0U);
  if (watched_ && wanted == events_) return;
  events_ = wanted;
  if (watched_) {
    loop_.Rewatch(fd_, wanted, *this);
  } else {
    watched_ = loop_.Watch(fd_, wanted, *this);
  }
}

void Connection::OnReady(uint32_t events) {
  handling_ = true;
  try {
    if ((events & EPOLLOUT) != 0) {
      blocked_ = false;
      SetEvents();
      Flush();
    }
    if (!closed_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !throttled_) {
      if (ReadSome()) {
        WantFlush();
      } else {
        Close();
      }
    } else if (!closed_ && (events & (EPOLLHUP | EPOLLERR)) != 0) {
      Close();  // a throttled one that is gone
    }
  } catch (const std::bad_alloc&) {
    Close();  // the end of one connection, not of the process
  }
  handling_ = false;
  MaybeDelete();
}

// False when the connection is over.
bool Connection::ReadSome() {
  for (size_t total = 0; total < kReadAtATurn;) {
    size_t capacity = 0;
    const bool in_place = frame_stream_ != nullptr && frame_left_ != 0 &&
                          frame_stream_->Place().size() >= kInPlaceFrom;
    const ssize_t count = in_place ? ReadInPlace(capacity) : ReadPlain(capacity);
    dropped_.clear();
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    heard_at_ = loop_.now();
    pinged_ = false;
    if (closed_) return false;
    total += static_cast<size_t>(count);
    if (credit_.spent()) {
      Throttle();
      return true;
    }
    if (static_cast<size_t>(count) < capacity) break;
  }
  return true;
}

ssize_t Connection::ReadPlain(size_t& capacity) {
  auto& plain = Plain();
  capacity = kPlainBytes;
  const ssize_t count = read(fd_, plain.data(), kPlainBytes);
  if (count > 0 && !lingers_ && !Feed(plain.data(), static_cast<size_t>(count))) {
    End(ConnectionEnd::kProtocolError);
  }
  return count;
}

// Reads the rest of a frame to its place in the message, and after it what will be, if the client
// goes on as it has begun, head after head and frame after frame. As soon as a head says otherwise,
// what is behind it is copied and looked at there: moved to its place from where it came to lie, it
// could overwrite what comes after it.
ssize_t Connection::ReadInPlace(size_t& capacity) {
  auto& plain = Plain();
  Stream* const stream = frame_stream_;
  absl::Span<uint8_t> place = stream->Place().first(std::min(stream->Place().size(), kReadAtATurn));
  std::array<iovec, kMostPieces + 2> pieces;
  size_t count = 0;
  size_t heads = 0;
  const auto add = [&](void* data, size_t size) {
    pieces[count++] = {data, size};
    capacity += size;
  };
  size_t frame = frame_left_;
  for (;;) {
    const size_t taken = std::min(frame, place.size());
    add(place.data(), taken);
    place.remove_prefix(taken);
    frame = stream->frame_bytes_;
    if (place.empty() || frame < kInPlaceFrom / 4 || count >= kMostPieces) break;
    add(plain.data() + heads, kFrameHead);
    heads += kFrameHead;
  }
  // And something behind it: the end of a message is often the end of what there is.
  add(plain.data() + heads, kFrameHead * kMostPieces);

  const ssize_t read_bytes = readv(fd_, pieces.data(), static_cast<int>(count));
  size_t left = read_bytes > 0 ? static_cast<size_t>(read_bytes) : 0;
  std::vector<uint8_t> copied;
  for (size_t i = 0; i < count && left != 0; ++i) {
    const bool in_place = i % 2 == 0 && i + 1 < count;
    const bool as_expected = frame_stream_ == stream && frame_left_ == pieces[i].iov_len;
    if (in_place && i > 0 && !as_expected) {
      CopyPieces({pieces.data() + i, count - i}, left, copied);
      if (!Feed(copied.data(), copied.size())) End(ConnectionEnd::kProtocolError);
      break;
    }
    const size_t size = std::min(left, pieces[i].iov_len);
    if (!Feed(static_cast<const uint8_t*>(pieces[i].iov_base), size)) {
      End(ConnectionEnd::kProtocolError);
      break;
    }
    left -= size;
  }
  return read_bytes;
}

void Connection::DropBuffer(Stream& stream, memory::Buffer buffer) {
  if (feeding_ && frame_stream_ == &stream) dropped_.push_back(std::move(buffer));
}

// Not read for a while: what it sends waits in its own socket.
void Connection::Throttle() {
  throttled_ = true;
  shared_.counters.throttled.fetch_add(1, std::memory_order_relaxed);
  const int64_t sharers = shared_.counters.throttled_now.fetch_add(1) + 1;
  SetEvents();
  loop_.timers().Set(*this, loop_.now() + credit_.Pause(sharers));
}

void Connection::Fire() {
  const int64_t sharers = shared_.counters.throttled_now.fetch_sub(1);
  credit_.Refill(Clock::now(), sharers);
  throttled_ = false;
  SetEvents();
}

// ---- Writing

void Connection::WantFlush() {
  if (flusher_.posted || blocked_ || closed_) return;
  flusher_.posted = true;
  loop_.AtTurnEnd(flusher_);
}

void Connection::OnTurnEnd() {
  flusher_.posted = false;
  handling_ = true;
  try {
    Flush();
  } catch (const std::bad_alloc&) {
    Close();
  }
  handling_ = false;
  MaybeDelete();
}

void Connection::Flush() {
  for (size_t total = 0; !closed_;) {
    if (!Pull()) return End(ConnectionEnd::kProtocolError);
    if (segments_.empty()) break;
    if (total >= kWriteAtATurn) {
      // The others first; and the loop does not wait while this is posted.
      flusher_.posted = true;
      loop_.Post(flusher_);
      return;
    }
    const ssize_t count = WriteSegments();
    if (count < 0) {
      if (errno != EAGAIN && errno != EINTR) return Close();
      blocked_ = true;
      SetEvents();
      return;
    }
    total += static_cast<size_t>(count);
    AfterWrite(static_cast<size_t>(count));
  }
  moved_at_ = loop_.now();
  if (closed_ || lingers_) return;
  if (nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0) Linger();
}

bool Connection::Pull() {
  while (queued_ < kPullBytes) {
    const uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    if (size < 0) return false;
    if (size == 0) return true;
    AddControl(data, static_cast<size_t>(size));
  }
  return true;
}

bool Connection::full() const { return queued_ >= kPullBytes; }

void Connection::AddControl(const uint8_t* data, size_t size) {
  control_.append(reinterpret_cast<const char*>(data), size);
  if (segments_.empty() || segments_.back().stream != nullptr) {
    segments_.push_back({nullptr, nullptr, 0});
  }
  segments_.back().size += size;
  queued_ += size;
}

ssize_t Connection::WriteSegments() {
  std::array<iovec, 2 * kMostPieces> pieces;
  size_t count = 0;
  size_t control = control_sent_;
  for (const Segment& segment : segments_) {
    if (count == pieces.size()) break;
    const void* data = segment.data;
    if (segment.stream == nullptr) {
      data = control_.data() + control;
      control += segment.size;
    }
    pieces[count++] = {const_cast<void*>(data), segment.size};
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  return sendmsg(fd_, &message, MSG_NOSIGNAL);
}

void Connection::AfterWrite(size_t bytes) {
  moved_at_ = loop_.now();
  credit_.EarnBytes(bytes);
  while (bytes != 0) {
    Segment& segment = segments_.front();
    const size_t size = std::min(bytes, segment.size);
    bytes -= size;
    queued_ -= size;
    segment.size -= size;
    Stream* const stream = segment.stream;
    if (stream == nullptr) {
      control_sent_ += size;
    } else {
      segment.data += size;
    }
    if (segment.size == 0) segments_.pop_front();
    if (stream != nullptr) stream->Sent(size);
  }
  if (control_sent_ == control_.size()) {
    control_.clear();
    control_sent_ = 0;
  }
}

// ---- The end

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

// The next step, if it is time for it.
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

bool Connection::EndWaitingCall() {
  Stream* oldest = nullptr;
  size_t waiting = 0;
  for (Stream* stream = streams_; stream != nullptr; stream = stream->next_) {
    if (!stream->WaitsForRequest()) continue;
    ++waiting;
    oldest = stream;  // they are listed newest first
  }
  waiting_calls_ = waiting;
  if (oldest == nullptr) return false;
  --waiting_calls_;
  oldest->Interrupt(errors::WithReason(
      absl::UnavailableError("the call sent nothing while the server had too many calls open; try "
                             "again later"),
      "TOO_MANY_CALLS"));
  return true;
}

void Connection::EndIdle(const absl::Status& status) {
  for (Stream* stream = streams_; stream != nullptr;) {
    Stream* const next = stream->next_;
    stream->EndIdle(status);
    stream = next;
  }
}

// Everything is said. Closing now would make the kernel take back what the peer has not read yet,
// if anything of the peer's is unread here: so first only this direction.
void Connection::Linger() {
  lingers_ = true;
  leave_at_ = loop_.now();
  shutdown(fd_, SHUT_WR);
}

void Connection::End(ConnectionEnd why) {
  if (!closed_) shared_.counters.CountEnd(why);
  Close();
}

void Connection::Close() {
  if (std::exchange(closed_, true)) return;
  if (throttled_) shared_.counters.throttled_now.fetch_sub(1);
  loop_.timers().Clear(*this);
  if (watched_) loop_.Unwatch(fd_);
  close(fd_);
  shared_.counters.connections.fetch_sub(1, std::memory_order_relaxed);
  set_.Remove(*this);
  segments_.clear();
  while (streams_ != nullptr) {
    Stream& stream = *streams_;
    stream.sent_ = stream.pulled_;  // nothing of it will be sent any more
    stream.OnClosed();
  }
  MaybeDelete();
}

void Connection::MaybeDelete() {
  if (closed_ && !handling_ && !flusher_.posted) delete this;
}

void Connection::Look(Clock::time_point now, bool anyone_waits) {
  const Limits& limits = shared_.limits;
  if (!throttled_) credit_.Refill(now, std::max<int64_t>(shared_.counters.throttled_now, 1));
  if (!peer_spoke_ && now - opened_at_ > kHandshake) return End(ConnectionEnd::kNoHandshake);
  if (lingers_ && now - leave_at_ > kLinger) return Close();
  if (!throttled_ && !pinged_ && now - heard_at_ > limits.keepalive) {
    pinged_ = true;
    pinged_at_ = now;
    nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
    WantFlush();
  }
  if (pinged_ && now - pinged_at_ > limits.keepalive / 3) return End(ConnectionEnd::kSilent);
  if (blocked_ && anyone_waits && now - moved_at_ > limits.stall) return End(ConnectionEnd::kStalled);
  LookAtStreams(now, anyone_waits);
  const bool asked = leaving_ == Leaving::kAnnounced || leaving_ == Leaving::kAsked;
  if (asked && stream_count_ == 0 && now - leave_at_ > kAnnounce) SayFinalGoAway();
  if (limits.max_connection_age.count() > 0) {
    if (leaving_ == Leaving::kNo && now - opened_at_ > limits.max_connection_age) {
      shared_.counters.CountEnd(ConnectionEnd::kAge);
      GoAway();
    } else if (leaving_ != Leaving::kNo &&
               now - opened_at_ > limits.max_connection_age + limits.max_connection_age_grace) {
      Close();
    }
  }
}

// A message that has waited for room for too long; an answer that the peer's window lets no further,
// while others wait for its memory.
void Connection::LookAtStreams(Clock::time_point now, bool anyone_waits) {
  const Limits& limits = shared_.limits;
  for (Stream* stream = streams_; stream != nullptr;) {
    Stream* const next = stream->next_;
    if (stream->waits_for_room_ && now - stream->waits_since_ > limits.queue_timeout) {
      stream->WaitedTooLong();
    } else if (anyone_waits && stream->sending() && now - stream->moved_at_ > limits.stall) {
      shared_.counters.stalled_answers.fetch_add(1, std::memory_order_relaxed);
      stream->Interrupt(absl::CancelledError("the client did not read its answer while others waited"));
    }
    stream = next;
  }
}

}  // namespace quantd::transport
