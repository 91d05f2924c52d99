// Received messages: moves them from frames to the memory that is reserved for them. See
// server_call.h.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/transport/connection.h"
#include "server/transport/notes.h"
#include "server/transport/server_call.h"
#include "server/transport/transport_context.h"
#include "server/wire/call_status.h"

namespace quantd::transport {

using admission::Receiving;
using loop::Clock;
using wire::WithReason;

namespace {

// Including the byte with its length.
constexpr int64_t kMostPadding = 256;

// The most bytes that `size` bytes may inflate to, up to `limit`: the maximum ratio of deflate.
uint64_t MostInflated(uint64_t size, uint64_t limit) {
  constexpr uint64_t kMostRatio = 1032;
  constexpr uint64_t kBegin = 1 << 10;
  return std::min(kMostRatio * size + kBegin, limit);
}

}  // namespace

void ServerCall::OnFrame(size_t bytes, bool is_last) {
  window_ -= static_cast<int64_t>(bytes);
  frame_left_ = bytes;
  // The last frame of a message is shorter than the previous ones.
  if (!is_last) frame_bytes_ = bytes;
}

absl::Span<uint8_t> ServerCall::Place() const {
  if (incoming_ != Incoming::kBody || interrupted()) return {};
  return {buffer_.data() + received_, std::min(buffer_.capacity(), total_) - received_};
}

void ServerCall::OnData(const uint8_t* data, size_t size) {
  MovedBytes(size);
  const size_t used = kept_.empty() ? Consume(data, size, frame_left_) : 0;
  frame_left_ -= std::min(frame_left_, size - used);
  if (used < size && !interrupted()) Keep(data + used, size - used);
}

// A padded frame has ended: its padding has used up window, which is granted again as if it were
// data. `window`: how much the peer may still send, according to HTTP/2.
void ServerCall::OnPadding(int64_t window) {
  frame_left_ = 0;
  window_ = std::max(window_, window);
  for_padding_ = kMostPadding;
  if (interrupted()) return;
  if (incoming_ == Incoming::kBody) {
    AskInTime();
  } else if (incoming_ == Incoming::kPrefix) {
    GrantFirstWindow();
  }
}

// Consumes bytes up to the end of one message; returns their number. Decrements `left`, which
// includes them.
size_t ServerCall::Consume(const uint8_t* data, size_t size, size_t& left) {
  size_t used = 0;
  while (used < size && !interrupted()) {
    size_t taken = 1;
    if (incoming_ == Incoming::kBody) {
      taken = std::min(size - used, total_ - received_);
    } else if (incoming_ != Incoming::kPrefix) {
      break;
    }
    left -= std::min(left, taken);
    if (incoming_ == Incoming::kBody) {
      Append(data + used, taken);
    } else {
      prefix_[prefix_have_++] = data[used];
      if (prefix_have_ == sizeof(prefix_)) BeginMessage();
    }
    used += taken;
  }
  return used;
}

// Bytes that may still come, including those kept here.
int64_t ServerCall::Allowed() const {
  return window_ + static_cast<int64_t>(frame_left_ + kept_left_);
}

void ServerCall::BeginMessage() {
  prefix_have_ = 0;
  total_ = static_cast<size_t>(prefix_[1]) << 24 | prefix_[2] << 16 | prefix_[3] << 8 | prefix_[4];
  received_ = 0;
  message_began_at_ = loop_.now();
  const bool compressed = prefix_[0] != 0;
  if (prefix_[0] > 1 || (compressed && head_.encoding() == Encoding::kIdentity)) {
    Interrupt(absl::InternalError(absl::StrCat("the message's flag for compression is ", prefix_[0],
                                               ", but grpc-encoding names none")));
    return;
  }
  const TransportContext& context = connection_->context();
  const uint64_t most = context.handler.MostBytes(method_);
  if (total_ > most) {
    Interrupt(WithReason(absl::ResourceExhaustedError(absl::StrCat(
                             "the request takes ", total_, " bytes, this method allows ", most)),
                         "MESSAGE_TOO_LARGE"));
    return;
  }
  const uint64_t limit = context.limits.max_message_bytes;
  if (total_ > limit) {
    Interrupt(WithReason(absl::ResourceExhaustedError(absl::StrCat(
                             "the request takes ", total_, " bytes, the server allows ", limit,
                             " (", context.limits.message_flag, ")")),
                         "MESSAGE_TOO_LARGE"));
    return;
  }
  charge_ = total_;
  if (compressed) {
    const uint64_t inflated = MostInflated(total_, std::min(limit, most));
    charge_ = std::min(total_ + inflated, receiving_.largest());
  }
  const Receiving::Begun begun = receiving_.Begin(*this, charge_, *this, loop_);
  if (begun == Receiving::Begun::kRefused) {
    Interrupt(WithReason(absl::UnavailableError("the server is busy: it receives as much as its "
                                                "memory allows; try again later"),
                         "RECEIVING_FULL"));
    return;
  }
  incoming_ = Incoming::kBody;
  const bool whole = begun == Receiving::Begun::kReserved;
  const size_t room = whole ? total_ : std::min<size_t>(total_, receiving_.window());
  buffer_ = pool_.Allocate(room);
  if (buffer_.data() == nullptr) {
    Interrupt(absl::ResourceExhaustedError(absl::StrCat("the system has no ", room, " bytes")));
    return;
  }
  if (received_ == total_) {
    MessageComplete();
  } else if (begun == Receiving::Begun::kReserved || charge_ <= receiving_.window()) {
    AskForMore();
  } else {
    // It asks when half of its first window is used: a peer that sends nothing asks for nothing.
    GrantFirstWindow();
  }
}

// Allocates the memory that is reserved for the message, if it is: received bytes move into it.
bool ServerCall::MakeRoom() {
  if (buffer_.capacity() >= total_) return true;
  memory::Buffer whole = pool_.Allocate(total_);
  if (whole.data() == nullptr) {
    Interrupt(absl::ResourceExhaustedError(absl::StrCat("the system has no ", total_, " bytes")));
    return false;
  }
  std::memcpy(whole.data(), buffer_.data(), received_);
  connection_->DropBuffer(std::exchange(buffer_, std::move(whole)));
  return true;
}

// Lets the peer send more, if more is to come and there is room for it.
void ServerCall::AskForMore() {
  if (Allowed() >= static_cast<int64_t>(total_ - received_) + for_padding_) return;
  if (charge_ <= receiving_.window()) {
    GrantWindow(std::max(static_cast<int64_t>(total_ - received_) + for_padding_,
                         static_cast<int64_t>(receiving_.small())));
    return;
  }
  const Receiving::Room room = receiving_.Extend(*this, received_);
  if (room.reserved && !MakeRoom()) return;
  if (!room.reserved && !waits_for_room_) waits_since_ = Clock::now();
  waits_for_room_ = !room.reserved;
  // A client that also pads its last frame must be able to send it.
  const uint64_t granted = std::min<uint64_t>(room.granted, total_);
  GrantWindow(static_cast<int64_t>(granted - received_) + (room.reserved ? for_padding_ : 0));
}

// Asks for room when half of the window is used.
void ServerCall::AskInTime() {
  const bool begins = received_ < receiving_.small() / 2;
  const uint64_t least = (begins ? receiving_.small() : receiving_.window()) / 2;
  const uint64_t step = std::clamp<uint64_t>(received_ / 2, least, 8 << 20);
  if (charge_ <= receiving_.window() || Allowed() < static_cast<int64_t>(step)) AskForMore();
}

// Grants what a message may send before it has asked for room. This is less than a stream may send
// at first: what comes while a message is computed has to be kept and copied.
void ServerCall::GrantFirstWindow() {
  const auto wanted = static_cast<int64_t>(receiving_.small());
  if (Allowed() < wanted / 2) GrantWindow(wanted);
}

// Grants window for `wanted` bytes, including those that may come already.
void ServerCall::GrantWindow(int64_t wanted) {
  const int64_t more = wanted - Allowed();
  if (more <= 0) return;
  connection_->GrantWindow(*this, more);
  window_ += more;
}

void ServerCall::Append(const uint8_t* data, size_t size) {
  if (size > buffer_.capacity() - received_) {
    // The peer has sent more than flow control allows.
    Interrupt(absl::InternalError("more bytes arrived than there is room for"));
    return;
  }
  uint8_t* const place = buffer_.data() + received_;
  // The socket was read into its place, or into another part of the same buffer.
  if (place != data) std::memmove(place, data, size);
  received_ += size;
  if (received_ == total_) {
    MessageComplete();
    return;
  }
  if (charge_ <= receiving_.small()) return;
  Receiving::Received(*this, received_);
  AskInTime();
}

// Keeps bytes that come early; a stream can't send more than its window.
void ServerCall::Keep(const uint8_t* data, size_t size) {
  // A string takes up to twice its size.
  const size_t needed = kept_.size() + size;
  const size_t capacity = needed <= kept_place_.amount() ? kept_place_.amount() : 2 * needed;
  if (!receiving_.TakeFirst(kept_place_, *this, capacity - kept_place_.amount())) {
    Interrupt(WithReason(absl::UnavailableError("the server is busy: it receives as much as its "
                                                "memory allows; try again later"),
                         "RECEIVING_FULL"));
    return;
  }
  kept_.reserve(capacity);
  kept_.append(reinterpret_cast<const char*>(data), size);
  kept_left_ += size;
}

void ServerCall::DropKept() {
  kept_ = std::string();
  receiving_.GiveFirst(kept_place_);
  kept_left_ = 0;
}

void ServerCall::MessageComplete() {
  Moved(loop_.now());
  Receiving::Received(*this, charge_);
  if (prefix_[0] != 0) {
    incoming_ = Incoming::kCompressed;
    Inflate();
    return;
  }
  incoming_ = Incoming::kComplete;
  if (read_ != nullptr) CompleteRead(true);
}

// A compressed message has arrived completely and no longer counts as stalled. It continues when
// there is room for its inflated size.
void ServerCall::Inflate() {
  if (!has_call_) return;
  if (charge_ > receiving_.window()) {
    const bool reserved = receiving_.Extend(*this, charge_).reserved;
    if (!reserved && !waits_for_room_) waits_since_ = Clock::now();
    waits_for_room_ = !reserved;
    if (!reserved) return;
  }
  const uint64_t most =
      std::min<uint64_t>(charge_ - total_, connection_->context().limits.max_message_bytes);
  inflater_.Add(*this, peer(), head_.encoding(), {buffer_.data(), total_}, most);
}

void ServerCall::OnInflated(const absl::Status& status, memory::Buffer buffer, size_t size) {
  if (!status.ok()) {
    const bool too_large = absl::IsResourceExhausted(status);
    Interrupt(too_large ? WithReason(status, "MESSAGE_TOO_LARGE") : status);
    MaybeDelete();
    return;
  }
  memory::Buffer compressed = std::exchange(buffer_, std::move(buffer));
  if (connection_ != nullptr) connection_->DropBuffer(std::move(compressed));
  total_ = size;
  incoming_ = Incoming::kComplete;
  if (read_ != nullptr) CompleteRead(true);
}

void ServerCall::CompleteRead(bool ok) {
  if (ok) {
    incoming_ = Incoming::kRead;
    read_into_->buffer = std::move(buffer_);
    read_into_->size = total_;
    read_into_->was_compressed = prefix_[0] != 0;
  }
  read_into_ = nullptr;
  loop_.Complete(*std::exchange(read_, nullptr), ok);
}

void ServerCall::Read(Message& message, loop::Event& read) {
  Moved(loop_.now());  // now it is the peer's turn
  read_into_ = &message;
  read_ = &read;
  // An interruption discards the message that had arrived.
  const bool complete = incoming_ == Incoming::kComplete && !interrupted();
  const bool over = remote_end_ && incoming_ != Incoming::kCompressed;
  if (complete || interrupted() || over) CompleteRead(complete);
}

void ServerCall::Taken() {
  receiving_.Release(*this);
  if (incoming_ != Incoming::kRead) return;
  incoming_ = Incoming::kPrefix;
  if (interrupted() || connection_ == nullptr) return;
  if (!kept_.empty()) {
    Consume(reinterpret_cast<const uint8_t*>(kept_.data()) + kept_.size() - kept_left_, kept_left_,
            kept_left_);
    if (kept_left_ == 0) DropKept();
  }
  if (remote_end_) {
    CheckRemoteEnd();
  } else if (incoming_ == Incoming::kPrefix && !interrupted()) {
    GrantFirstWindow();
  }
}

void ServerCall::OnRemoteEnd() {
  remote_end_ = true;
  CheckRemoteEnd();
}

void ServerCall::CheckRemoteEnd() {
  if (incoming_ == Incoming::kBody) {
    Interrupt(absl::InvalidArgumentError(absl::StrCat("the client's stream ends after ", received_,
                                                      " of the message's ", total_, " bytes")));
  } else if (incoming_ == Incoming::kPrefix && prefix_have_ != 0) {
    Interrupt(absl::InvalidArgumentError("the client's stream ends in the length of a message"));
  } else if (incoming_ == Incoming::kPrefix && read_ != nullptr) {
    CompleteRead(false);
  }
}

void ServerCall::OnRoom() {
  if (connection_ != nullptr && !interrupted()) {
    if (incoming_ == Incoming::kBody) AskForMore();
    if (incoming_ == Incoming::kCompressed && waits_for_room_) Inflate();
  }
  MaybeDelete();
}

void ServerCall::WaitedTooLong() {
  const auto timeout = connection_->context().limits.queue_timeout.count();
  Interrupt(WithReason(absl::UnavailableError(absl::StrCat(
                           "the server is busy: a message of ", total_, " bytes has waited for ",
                           timeout, " ms for room (--queue_timeout); try again later")),
                       "QUEUE_TIMEOUT"));
}

void ServerCall::OnGivenUp() {
  // Unless all of it has arrived meanwhile and there is room for it.
  if (incoming_ == Incoming::kBody || waits_for_room_) {
    if (connection_ != nullptr) {
      NoteAbuse(connection_->context().counters, AbuseAction::kUploadStalled, *peer_name_);
    }
    Interrupt(WithReason(absl::UnavailableError(absl::StrCat(
                             "the upload stopped at ", received_, " of ", total_,
                             " bytes while others waited for its memory; try again later")),
                         "UPLOAD_STALLED"));
  }
  MaybeDelete();
}

}  // namespace quantd::transport
