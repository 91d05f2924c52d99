// The socket: what is read, and when. Writing is in connection_writing.cc.
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

// The most bytes that a connection reads before other connections get a turn.
constexpr size_t kReadPerIteration = 256 << 10;
// After this many bytes, calls that can continue do so before more is read.
constexpr size_t kEnoughRead = 64 << 10;
// The size of an ordinary read (not in place), for all connections of a peer together, averaged
// over eight: it may contain thousands of small calls, which are computed before others are read.
// Each connection reads at least this much.
constexpr size_t kPlainBytes = 64 << 10;
constexpr size_t kLeastPlainBytes = 2 << 10;
constexpr size_t kFullReaders = 8;
// Bytes read after everything is sent: a peer that sends more is no longer read.
constexpr size_t kMostThrownAway = 64 << 10;
// A read with fewer bytes costs credit: see FrameCredit.
constexpr size_t kTinyRead = 64;
constexpr double kTinyReadCost = 0.25;
// Remaining parts of messages of this size are read in place.
constexpr size_t kInPlaceFrom = 16 << 10;
constexpr int kMostPieces = 64;
constexpr size_t kFrameHead = 9;

// The buffer for ordinary reads: one per thread, used within one function.
std::array<uint8_t, kPlainBytes + kMostPieces * kFrameHead>& Plain() {
  thread_local std::array<uint8_t, kPlainBytes + kMostPieces * kFrameHead> bytes;
  return bytes;
}

// Copies `size` bytes of the pieces into one, without the first `skipped`.
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
      // If the connection is not read, notice that the peer is gone, unless calls are open.
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
  // TLS may wait for another direction than the one that was asked for.
  const bool crossed_write = tls_ != nullptr && tls_->write_wants_read();
  if (crossed_write && (events & EPOLLIN) != 0) events |= EPOLLOUT;
  if (tls_ != nullptr && tls_->read_wants_write() && (events & EPOLLOUT) != 0) events |= EPOLLIN;
  handling_ = true;
  try {
    if ((events & EPOLLOUT) != 0) {
      blocked_ = false;
      BeginWriting();
      Flush();
      if (!closed_) SetEvents();
    }
    if (!closed_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && listens()) {
      if (ReadSome()) {
        WantFlush();
      } else {
        Close();
      }
    } else if (!closed_ && (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) {
      Close();  // the peer has gone while the connection was not read
    }
    if (!closed_) Charge();
  } catch (const std::bad_alloc&) {
    Close();  // ends one connection, not the process
  }
  handling_ = false;
  MaybeDelete();
}

// Returns false if the connection is over.
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
      // Streams that may continue should not wait until everything available has been read.
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
    if (total >= std::min(kEnoughRead, PlainBytes()) && loop_.has_ready() &&
        unanswered_ + total < kReadPerIteration) {
      loop_.LookAgain();
      break;
    }
  }
  unanswered_ += total;
  if (tls_ != nullptr) {
    SetEvents();
    // The socket does not report data that is no longer in it.
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

size_t Connection::PlainBytes() const {
  const auto readers = static_cast<size_t>(account_->connections.load(std::memory_order_relaxed));
  return std::clamp(kPlainBytes * kFullReaders / std::max<size_t>(readers, 1), kLeastPlainBytes,
                    kPlainBytes);
}

ssize_t Connection::ReadPlain(size_t& capacity) {
  auto& plain = Plain();
  capacity = PlainBytes();
  const iovec piece{plain.data(), capacity};
  const ssize_t count = ReadPieces({&piece, 1});
  if (count > 0 && !lingers_ && !FeedWatchfully(plain.data(), static_cast<size_t>(count))) {
    End(ConnectionEnd::kProtocolError);
  }
  return count;
}

// Reads the rest of a frame to its place in the message, followed by alternating heads and frames,
// as expected if the client continues in the same way. Once a head differs, the bytes after it are
// copied and processed there: if they were moved to their place from where they are, they could
// overwrite what follows.
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
  // And some bytes more: a message's end is often the end of the input, as a short read shows.
  add(plain.data() + heads, kFrameHead * kMostPieces);

  const ssize_t read_bytes = ReadPieces({pieces.data(), count});
  size_t left = read_bytes > 0 ? static_cast<size_t>(read_bytes) : 0;
  std::vector<uint8_t> copied;
  for (size_t i = 0; i < count && left != 0; ++i) {
    const bool in_place = i % 2 == 0 && i + 1 < count;
    size_t size = std::min(left, pieces[i].iov_len);
    const bool as_expected = frame_stream_ == stream && frame_left_ == pieces[i].iov_len;
    if (in_place && i > 0 && !as_expected) {
      // The bytes that belong to the frame are in their place.
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

// Stops reading for a while: the peer's data waits in its own socket.
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

// Reads later what is no longer in the socket, which the socket therefore does not report.
void Connection::ReadSoon() {
  const bool more = !kept_.empty() || (tls_ != nullptr && tls_->more_to_read());
  if (more && listens() && !std::exchange(reader_.posted, true)) loop_.AtIterationEnd(reader_);
}

}  // namespace quantd::transport
