// See server_call.h. This file has a call's start, its responses and its end; receiving is in
// server_call_receiving.cc.
#include "server/transport/server_call.h"

#include <utility>

#include "server/transport/connection.h"
#include "server/transport/connection_set.h"
#include "server/transport/notes.h"
#include "server/transport/transport_context.h"
#include "server/wire/call_status.h"

namespace quantd::transport {

using loop::Clock;

namespace {

// Messages up to this size are copied behind one that is being sent, to share its packet, up to a
// total size.
constexpr size_t kSmallMessage = 4 << 10;
constexpr size_t kMostBatched = 12 << 10;

}  // namespace

ServerCall::ServerCall(Connection& connection, int32_t id)
    : Holder(connection.loop(), connection.peer().id, connection.loop().now()),
      connection_(&connection),
      loop_(connection.loop()),
      receiving_(connection.context().receiving),
      pool_(connection.context().pool),
      inflater_(connection.set().inflater()),
      id_(id),
      peer_name_(connection.peer_name()),
      arrived_at_(loop_.now()),
      window_(static_cast<int64_t>(receiving_.window())) {}

void ServerCall::Begin(int method) {
  method_ = method;
  has_call_ = true;
  if (head_.timeout().has_value()) loop_.timers().Set(*this, arrived_at_ + *head_.timeout());
  loop_.Post(starter_);
}

// If the client has already cancelled, the call has cost nothing so far.
void ServerCall::Start() {
  if (http_closed_) return End();
  connection_->context().handler.Begin(*this);
}

void ServerCall::Fire() {
  Interrupt(absl::DeadlineExceededError("the deadline passed before the response was ready"));
}

void ServerCall::Interrupt(absl::Status status) {
  if (interrupted()) return;
  interruption_ = std::move(status);
  interrupted_.store(true, std::memory_order_release);
  inflater_.Remove(*this);
  waits_for_room_ = false;
  // Input is dropped from now on, and so is what has arrived, unless it has been read.
  if (incoming_ != Incoming::kRead) {
    if (connection_ != nullptr) connection_->DropBuffer(std::move(buffer_));
    buffer_ = memory::Buffer();
    receiving_.Release(*this);
  }
  DropKept();
  // A response that is being sent is cut off; before that the call can still send a status.
  if (written_ != nullptr || finished_ != nullptr) CutOff();
  if (read_ != nullptr) CompleteRead(false);
  if (waits_for_ != nullptr) std::exchange(waits_for_, nullptr)->Cancel();
}

void ServerCall::CutOff() {
  if (connection_ == nullptr || http_closed_ || std::exchange(cut_off_, true)) return;
  connection_->Reset(*this);
}

// ---- Sending

void ServerCall::Write(memory::Piece message, loop::Event& written, bool compressed) {
  if (connection_ == nullptr || http_closed_) {
    written.Complete(false);
    return;
  }
  connection_->OnResponse();
  message.begin -= kPrefixBytes;
  message.begin[0] = compressed ? 1 : 0;
  for (int i = 0; i < 4; ++i) {
    message.begin[1 + i] = static_cast<uint8_t>(message.size >> (24 - 8 * i));
  }
  message.size += kPrefixBytes;
  const size_t size = message.size;
  const bool small = size <= kSmallMessage;
  if (sending() && small && batch_.size() < kMostBatched) {
    batch_.append(reinterpret_cast<const char*>(message.begin), message.size);
  } else if (sending()) {
    next_out_ = std::move(message);
  } else {
    out_ = std::move(message);
    if (small && out_.buffer.capacity() > kSmallMessage) SendFromOwnBytes();
    next_byte_ = out_.begin;
    pace_.Start(loop_.now(), all_sent_);
    Moved(loop_.now());
    connection_->Send(*this);
  }
  if (!remote_end_) connection_->Answered(size);
  if (small && next_out_.begin == nullptr) {
    written.Complete(true);
  } else {
    written_ = &written;
  }
}

// Frees a buffer that is much larger than its message, for example after compression, because no
// permit covers it once the message is written.
void ServerCall::SendFromOwnBytes() {
  batch_sent_.assign(reinterpret_cast<const char*>(out_.begin), out_.size);
  out_.buffer = memory::Buffer();
  out_.begin = reinterpret_cast<uint8_t*>(batch_sent_.data());
}

void ServerCall::WriteAsMade(memory::Piece begin, size_t size, MessageSource& source,
                             loop::Event& written) {
  unmade_ = size - begin.size;
  source_ = &source;
  begin.size = size;
  Write(std::move(begin), written);
}

bool ServerCall::MakeMore() {
  if (unmade_ == 0 || unpulled() != 0 || interrupted()) return false;
  memory::Piece part = source_->MakeMore();
  if (part.size == 0) return false;
  unmade_ -= part.size;
  next_byte_ = part.begin;
  parts_.push_back({std::move(part.buffer), out_.size - unmade_});
  return true;
}

const uint8_t* ServerCall::Pull(size_t size) {
  offered_ = 0;
  pulled_ += size;
  return std::exchange(next_byte_, next_byte_ + size);
}

// Starts the message that waits behind the one that was sent.
void ServerCall::StartNext() {
  out_ = memory::Piece();
  pulled_ = 0;
  sent_ = 0;
  if (!batch_.empty()) {
    batch_sent_ = std::exchange(batch_, std::string());
    out_.begin = reinterpret_cast<uint8_t*>(batch_sent_.data());
    out_.size = batch_sent_.size();
  } else {
    batch_sent_ = std::string();
    out_ = std::exchange(next_out_, memory::Piece());
  }
  next_byte_ = out_.begin;
  if (sending() && !http_closed_) connection_->Send(*this);
}

void ServerCall::Finish(const wire::CallStatus& status, loop::Event& finished) {
  finished_ = &finished;
  if (closed_) return CompleteFinish();
  if (http_closed_) return;  // bytes of it are still being sent
  finish_ = status;
  finishing_ = true;
  if (interrupted() && !connection_->HasRoomFor(*this)) DropUnsent();
  connection_->Send(*this);
}

// An interrupted call does not wait for the peer's window: what is in no frame yet is dropped, so
// that trailers can be sent. Trailers can't follow a part of a message, nor say OK without the
// message.
void ServerCall::DropUnsent() {
  const size_t framed = pulled_ + offered_;
  if ((framed != 0 && framed != out_.size) || finish_.ok()) return CutOff();
  batch_ = std::string();
  next_out_ = memory::Piece();
  if (framed == 0) {
    out_ = memory::Piece();
    batch_sent_ = std::string();
  }
  if (written_ != nullptr) loop_.Complete(*std::exchange(written_, nullptr), false);
}

void ServerCall::Sent(size_t bytes) {
  sent_ += bytes;
  all_sent_ += bytes;
  MovedBytes(bytes);
  while (!parts_.empty() && parts_.front().end <= sent_) parts_.erase(parts_.begin());
  if (sent_ == out_.size) {
    // The writes of a batch have completed long ago; that of next_out_ has not begun.
    const bool of_message = batch_sent_.empty();
    if (of_message && written_ != nullptr && next_out_.begin == nullptr) {
      loop_.Complete(*std::exchange(written_, nullptr), true);
    }
    StartNext();
  }
  if (http_closed_) MaybeClosed();
}

void ServerCall::MovedBytes(size_t bytes) {
  if (connection_ != nullptr) Moved(loop_.now(), bytes, connection_->context().limits.min_rate);
}

// Its place is another's.
void ServerCall::OnDisplaced() {
  if (connection_ == nullptr) return MaybeDelete();
  Connection& connection = *connection_;
  if (!sending()) {
    NoteAbuse(connection.context().counters, AbuseAction::kCallEvicted, *peer_name_);
    Interrupt(wire::WithReason(
        absl::UnavailableError("the call stood still (--stall_timeout) while others waited for its "
                               "place; try again later"),
        "TOO_MANY_CALLS"));
    return MaybeDelete();
  }
  NoteAbuse(connection.context().counters, AbuseAction::kAnswerStalled, *peer_name_);
  Interrupt(absl::CancelledError("the client read its response too slowly while others waited"));
  // Frames that the socket does not take keep their memory.
  if (connection.blocked_ && sent_ < pulled_) return connection.End(ConnectionEnd::kStalled);
  CutOff();  // also a call that was interrupted before, and could not say so
  MaybeDelete();
}

void ServerCall::OnClosed() {
  http_closed_ = true;
  if (!trailers_sent_) {
    const bool late = head_.timeout().has_value() && Clock::now() >= arrived_at_ + *head_.timeout();
    Interrupt(late
                  ? absl::DeadlineExceededError("the deadline passed before the response was ready")
                  : absl::CancelledError("the client cancelled the call"));
  }
  MaybeClosed();
}

// A frame whose head has been sent must be sent completely: bytes in frames are kept until the
// kernel has them, or the connection is gone.
void ServerCall::MaybeClosed() {
  if (connection_ != nullptr && sending() && sent_ < pulled_) return;
  closed_ = true;
  loop_.timers().Clear(*this);
  if (connection_ != nullptr) std::exchange(connection_, nullptr)->Forget(*this);
  out_ = memory::Piece();
  parts_.clear();
  next_out_ = memory::Piece();
  if (written_ != nullptr) loop_.Complete(*std::exchange(written_, nullptr), false);
  CompleteFinish();
  MaybeDelete();
}

void ServerCall::CompleteFinish() {
  if (finished_ != nullptr) loop_.Complete(*std::exchange(finished_, nullptr), trailers_sent_);
}

void ServerCall::End() {
  has_call_ = false;
  inflater_.Remove(*this);
  receiving_.Release(*this);
  DropKept();
  MaybeDelete();
}

void ServerCall::MaybeDelete() {
  if (has_call_ || !closed_ || receiving_.Told(*this) || displaced()) return;
  delete this;
}

}  // namespace quantd::transport
