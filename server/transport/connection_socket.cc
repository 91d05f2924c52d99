// The socket: what is read and written, and when. See connection.h.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "server/transport/connection.h"
#include "server/transport/notes.h"

namespace quantd::transport {
namespace {

// What a connection may read, and write, before it is another one's turn.
constexpr size_t kReadPerIteration = 256 << 10;
constexpr size_t kWritePerIteration = 1 << 20;
// When so much was read, calls that can go on do so before more is read.
constexpr size_t kEnoughRead = 64 << 10;
// Small responses to a third of the calls are not kept for the others'. Every one on its own takes
// more CPU with many in flight; with half of them four calls of 4 bytes are slower.
constexpr size_t kSmallResponse = 64 << 10;
constexpr size_t kThird = 3;
// And parts of responses that are made as they are sent.
constexpr int kMakePerIteration = 8;
// Read at once, beyond what goes to its place.
constexpr size_t kPlainBytes = 64 << 10;
// Made into frames before they are written; and of these, bytes that are in no message.
constexpr size_t kPullBytes = 512 << 10;
constexpr size_t kControlBytes = 32 << 10;
// Read after everything is said: a peer that goes on is no longer listened to.
constexpr size_t kMostThrownAway = 64 << 10;
// What reading costs when it brings nothing of use: see FrameCredit.
constexpr size_t kTinyRead = 64;
constexpr double kTinyReadCost = 0.25;
// Rests of messages that are worth a place of their own in a read.
constexpr size_t kInPlaceFrom = 16 << 10;
constexpr int kMostPieces = 64;
constexpr size_t kFrameHead = 9;

// What is read plainly: one buffer a thread, used up within one function.
std::array<uint8_t, kPlainBytes + kMostPieces * kFrameHead>& Plain() {
  thread_local std::array<uint8_t, kPlainBytes + kMostPieces * kFrameHead> bytes;
  return bytes;
}

// `size` bytes of the pieces, in one, without the first `skipped`.
void CopyPieces(absl::Span<const iovec> pieces, size_t skipped, size_t size,
                std::vector<uint8_t>& copied) {
  copied.reserve(size);
  for (const iovec& piece : pieces) {
    const size_t passed = std::min(skipped, piece.iov_len);
    skipped -= passed;
    const auto* const begin = static_cast<const uint8_t*>(piece.iov_base) + passed;
    const size_t taken = std::min(size - copied.size(), piece.iov_len - passed);
    copied.insert(copied.end(), begin, begin + taken);
  }
}

}  // namespace

void Connection::SetEvents() {
  const uint32_t wanted =
      (tls_ != nullptr ? TlsEvents() : (listens() ? EPOLLIN : 0U) | (blocked_ ? EPOLLOUT : 0U)) |
      // A peer that is gone while nobody listens leaves at once, unless calls of it are open.
      (!listens() && stream_count_ == 0 ? EPOLLRDHUP : 0U);
  if (watched_ && wanted == events_) return;
  events_ = wanted;
  if (watched_) {
    loop_.Rewatch(fd_, wanted, *this);
  } else {
    watched_ = loop_.Watch(fd_, wanted, *this);
  }
}

void Connection::OnReady(uint32_t events) {
  if (handshaking()) return OnHandshakeReady();
  // What TLS waits for is not always what is wanted of it.
  const bool crossed_write = tls_ != nullptr && tls_->write_wants_read();
  if (crossed_write && (events & EPOLLIN) != 0) events |= EPOLLOUT;
  if (tls_ != nullptr && tls_->read_wants_write() && (events & EPOLLOUT) != 0) events |= EPOLLIN;
  handling_ = true;
  try {
    if ((events & EPOLLOUT) != 0) {
      blocked_ = false;
      SetEvents();
      Flush();
    }
    if (!closed_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && listens()) {
      if (ReadSome()) {
        WantFlush();
      } else {
        Close();
      }
    } else if (!closed_ && (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) {
      Close();  // one that is gone while nobody listened
    }
    if (!closed_) Charge();
  } catch (const std::bad_alloc&) {
    Close();  // the end of one connection, not of the process
  }
  handling_ = false;
  MaybeDelete();
}

// False when the connection is over.
bool Connection::ReadSome() {
  size_t total = 0;
  while (total < kReadPerIteration && !closed_ && listens()) {
    if (!kept_.empty() && !FeedKept()) break;
    size_t capacity = 0;
    const bool in_place = frame_stream_ != nullptr && frame_left_ != 0 &&
                          frame_stream_->Place().size() >= kInPlaceFrom;
    const ssize_t count = in_place ? ReadInPlace(capacity) : ReadPlain(capacity);
    const bool again = count < 0 && (errno == EAGAIN || errno == EINTR);
    dropped_.clear();
    if (count <= 0 && !again) return false;
    if (count > 0) {
      heard_at_ = loop_.now();
      pinged_ = false;
      // Who has been let go on should not stand still until all that is here has been read.
      if (std::exchange(has_grants_, false)) Flush();
      if (closed_) return false;
      total += static_cast<size_t>(count);
      credit_.SpendBytes(static_cast<size_t>(count));
      if (static_cast<size_t>(count) < kTinyRead) credit_.Spend(kTinyReadCost);
      if (IsOver() && (thrown_away_ += static_cast<size_t>(count)) > kMostThrownAway) {
        deaf_ = true;
        SetEvents();
      }
    }
    if (tls_ != nullptr) credit_.Spend(tls_->TakeCrumbs());
    if (credit_.spent()) {
      Throttle();
      return true;
    }
    if (again || static_cast<size_t>(count) < capacity) break;
    if (total >= kEnoughRead && loop_.has_ready() && unanswered_ + total < kReadPerIteration) {
      loop_.LookAgain();
      break;
    }
  }
  unanswered_ += total;
  if (tls_ != nullptr) {
    SetEvents();
    // The socket does not tell of what is no longer in it.
    if (listens() && tls_->more_to_read() && !std::exchange(reader_.posted, true)) {
      loop_.AtIterationEnd(reader_);
    }
  }
  return true;
}

void Connection::ReadOn() {
  reader_.posted = false;
  if (closed_) return MaybeDelete();
  OnReady(EPOLLIN);
}

ssize_t Connection::ReadPieces(absl::Span<const iovec> pieces) {
  if (tls_ != nullptr) return tls_->Read(pieces);
  return readv(fd_, pieces.data(), static_cast<int>(pieces.size()));
}

ssize_t Connection::ReadPlain(size_t& capacity) {
  auto& plain = Plain();
  capacity = kPlainBytes;
  const iovec piece{plain.data(), kPlainBytes};
  const ssize_t count = ReadPieces({&piece, 1});
  if (count > 0 && !lingers_ && !FeedWatchfully(plain.data(), static_cast<size_t>(count))) {
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
  ServerCall* const stream = frame_stream_;
  absl::Span<uint8_t> place =
      stream->Place().first(std::min(stream->Place().size(), kReadPerIteration));
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

  const ssize_t read_bytes = ReadPieces({pieces.data(), count});
  size_t left = read_bytes > 0 ? static_cast<size_t>(read_bytes) : 0;
  std::vector<uint8_t> copied;
  for (size_t i = 0; i < count && left != 0; ++i) {
    const bool in_place = i % 2 == 0 && i + 1 < count;
    size_t size = std::min(left, pieces[i].iov_len);
    const bool as_expected = frame_stream_ == stream && frame_left_ == pieces[i].iov_len;
    if (in_place && i > 0 && !as_expected) {
      // As much of it as belongs to the frame is where it belongs.
      size = frame_stream_ == stream ? std::min(frame_left_, size) : 0;
      CopyPieces({pieces.data() + i, count - i}, size, left - size, copied);
    }
    const auto* const data = static_cast<const uint8_t*>(pieces[i].iov_base);
    if ((size != 0 && !Feed(data, size)) ||
        (!copied.empty() && !FeedWatchfully(copied.data(), copied.size()))) {
      End(ConnectionEnd::kProtocolError);
      break;
    }
    if (!copied.empty()) break;
    left -= size;
  }
  return read_bytes;
}

void Connection::DropBuffer(memory::Buffer buffer) {
  if (feeding_) dropped_.push_back(std::move(buffer));
}

// Not read for a while: what it sends waits in its own socket.
void Connection::Throttle() {
  throttled_ = true;
  NoteAbuse(context_.counters, AbuseAction::kConnectionThrottled, peer_.name);
  const int64_t sharers = context_.counters.throttled_now.fetch_add(1) + 1;
  SetEvents();
  loop_.timers().Set(*this, loop_.now() + credit_.Pause(sharers));
}

void Connection::Fire() {
  const int64_t sharers = context_.counters.throttled_now.fetch_sub(1);
  credit_.Refill(loop::Clock::now(), sharers);
  throttled_ = false;
  SetEvents();
  ReadSoon();
}

// What is no longer in the socket, and so is not told of by it.
void Connection::ReadSoon() {
  const bool more = !kept_.empty() || (tls_ != nullptr && tls_->more_to_read());
  if (more && listens() && !std::exchange(reader_.posted, true)) loop_.AtIterationEnd(reader_);
}

// ---- Writing

void Connection::WantFlush() {
  if (flusher_.posted || blocked_ || closed_) return;
  flusher_.posted = true;
  loop_.AtIterationEnd(flusher_);
}

// The peer works on these while the others are computed. Else it would wait for all, and then the
// server for its next requests: each would sleep half of the time, and four calls at a time were
// half as fast.
void Connection::Answered(size_t bytes) {
  ++answered_;
  if (bytes > kSmallResponse || kThird * answered_ < stream_count_ || blocked_ || closed_) return;
  if (!std::exchange(prompt_flusher_.posted, true)) loop_.PostNext(prompt_flusher_);
}

void Connection::OnIterationEnd() {
  flusher_.posted = false;
  FlushFromLoop();
}

void Connection::FlushNow() {
  prompt_flusher_.posted = false;
  FlushFromLoop();
}

void Connection::FlushFromLoop() {
  if (closed_) return MaybeDelete();
  handling_ = true;
  try {
    Flush();
    if (!closed_) Charge();
  } catch (const std::bad_alloc&) {
    Close();
  }
  handling_ = false;
  MaybeDelete();
}

void Connection::Flush() {
  FlushSome();
  if (held_back_ && !closed_) LetGo();
}

void Connection::FlushSome() {
  if (handshaking()) return;
  made_ = 0;
  unanswered_ = 0;
  answered_ = 0;
  for (size_t total = 0; !closed_;) {
    if (!Pull()) return End(ConnectionEnd::kProtocolError);
    const bool made_enough = made_ >= kMakePerIteration;
    if (segments_.empty() && !made_enough) break;
    if (segments_.empty() || total >= kWritePerIteration) {
      // The others first; and the loop does not wait while this is posted.
      if (!std::exchange(flusher_.posted, true)) loop_.Post(flusher_);
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
  if (nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0)
    Linger();
}

bool Connection::Pull() {
  while (queued_ < kPullBytes && control_.size() - control_sent_ < kControlBytes) {
    const uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    if (size < 0) return false;
    if (size == 0) {
      submitted_ = 0;
      return true;
    }
    AddControl(data, static_cast<size_t>(size));
  }
  return true;
}

bool Connection::full() const { return queued_ >= kPullBytes || made_ >= kMakePerIteration; }

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
  if (tls_ != nullptr) return tls_->Write({pieces.data(), count});
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  return sendmsg(fd_, &message, MSG_NOSIGNAL);
}

// A last word to who can't be told in frames.
void Connection::SayAtOnce(absl::string_view text) {
  if (tls_ != nullptr && tls_->established()) {
    const iovec piece{const_cast<char*>(text.data()), text.size()};
    tls_->Write({&piece, 1});
  } else {
    [[maybe_unused]] const ssize_t sent = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
  }
}

void Connection::AfterWrite(size_t bytes) {
  moved_at_ = loop_.now();
  credit_.EarnBytes(bytes);
  written_ += bytes;
  while (bytes != 0) {
    Segment& segment = segments_.front();
    const size_t size = std::min(bytes, segment.size);
    bytes -= size;
    queued_ -= size;
    segment.size -= size;
    ServerCall* const stream = segment.stream;
    if (stream == nullptr) {
      control_sent_ += size;
    } else {
      segment.data += size;
    }
    if (segment.size == 0) segments_.pop_front();
    if (stream != nullptr) stream->Sent(size);
  }
  // What is sent is not kept, also when there is never nothing left.
  if (control_sent_ == control_.size() && control_.capacity() <= kControlBytes / 2) {
    control_.clear();
    control_sent_ = 0;
  } else if (control_sent_ == control_.size() || control_sent_ > kControlBytes / 2) {
    control_ = control_.substr(control_sent_);
    control_sent_ = 0;
  }
}

}  // namespace quantd::transport
