// The socket: what is written, and when. Reading is in connection_reading.cc.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "server/transport/connection.h"

namespace quantd::transport {
namespace {

// The most bytes that a connection writes before other connections get a turn.
constexpr size_t kWritePerIteration = 1 << 20;
// The most parts of responses that it makes in the same time.
constexpr int kMakePerIteration = 8;
// The bytes of frames that are made before they are written; and the part of these in no message.
constexpr size_t kPullBytes = 512 << 10;
constexpr size_t kControlBytes = 32 << 10;
static_assert(kPullBytes + (64 << 10) <= kMostMadeAhead);  // a frame may exceed it
constexpr size_t kMostSegments = 128;                      // in one write
// Once small responses to a third of the calls are ready, they are sent without waiting for the
// others. Sending each on its own uses more CPU with many calls in flight; waiting for half of them
// makes four calls of 4 bytes slower. With few calls, larger responses count as small, too: four
// Dequantize of 64 KiB reached 0.77 of the echo's rate instead of 0.97.
constexpr size_t kThird = 3;
constexpr size_t kSmallResponse = 64 << 10;
constexpr size_t kFewCalls = 8;
constexpr size_t kSmallOfFew = 512 << 10;

}  // namespace

void Connection::WantFlush() {
  if (flusher_.posted || blocked_ || closed_) return;
  flusher_.posted = true;
  loop_.AtIterationEnd(flusher_);
}

// The peer works on these responses while the others are computed. Otherwise the peer would wait
// for all of them, and then the server for its next requests: each would be idle half of the time,
// and four calls at a time were half as fast.
void Connection::Answered(size_t bytes) {
  ++answered_;
  const size_t small = stream_count_ <= kFewCalls ? kSmallOfFew : kSmallResponse;
  if (bytes > small || kThird * answered_ < stream_count_ || blocked_ || closed_) return;
  FlushNext();
}

void Connection::FlushNext() {
  if (!std::exchange(prompt_flusher_.posted, true)) loop_.PostNext(prompt_flusher_);
}

void Connection::OnIterationEnd() {
  flusher_.posted = false;
  BeginWriting();
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

void Connection::BeginWriting() {
  made_ = 0;
  iteration_written_ = 0;
}

void Connection::Flush() {
  FlushSome();
  if (held_back_ && !closed_) LetGo();
}

void Connection::FlushSome() {
  if (handshaking()) return;
  unanswered_ = 0;
  answered_ = 0;
  while (!closed_) {
    if (!Pull()) return End(ConnectionEnd::kProtocolError);
    const bool made_enough = made_ >= kMakePerIteration;
    if (segments_.empty() && !made_enough) break;
    if (segments_.empty() || iteration_written_ >= kWritePerIteration) {
      // Other connections first; the loop does not wait while this is posted.
      if (!std::exchange(flusher_.posted, true)) loop_.AtIterationEnd(flusher_);
      return;
    }
    size_t offered = 0;
    const ssize_t count = WriteSegments(offered);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return Close();
    const size_t written = count < 0 ? 0 : static_cast<size_t>(count);
    if (written != 0) {
      iteration_written_ += written;
      AfterWrite(written);
    }
    // A socket that takes only a part is full. TLS may have other reasons.
    if (written == 0 || (tls_ == nullptr && written < offered)) {
      blocked_ = true;
      if (!closed_) SetEvents();
      return;
    }
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
      // If it is full, frames wait behind those of a message that is not sent now.
      if (!full()) submitted_ = 0;
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

ssize_t Connection::WriteSegments(size_t& offered) {
  std::array<iovec, kMostSegments> pieces;
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
    offered += segment.size;
  }
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
  // Frees bytes that were sent, even if the buffer is never empty.
  if (control_sent_ == control_.size() && control_.capacity() <= kControlBytes / 2) {
    control_.clear();
    control_sent_ = 0;
  } else if (control_sent_ == control_.size() || control_sent_ > kControlBytes / 2) {
    control_ = control_.substr(control_sent_);
    control_sent_ = 0;
  }
}

}  // namespace quantd::transport
