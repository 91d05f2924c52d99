#include "server/transport/server_call.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/wire/call_status.h"

namespace quantd::transport {

using admission::Receiving;
using loop::Clock;
using wire::WithReason;

namespace {

// Messages up to this size are copied behind one that is being sent, to share its packet, up to a
// total size.
constexpr size_t kSmallMessage = 4 << 10;
constexpr size_t kMostBatched = 12 << 10;
// The most bytes of a path that is repeated in an error, because clients may invent it.
constexpr size_t kMostPath = 256;
// Including the byte with its length.
constexpr int64_t kMostPadding = 256;

// The most bytes that `size` bytes may inflate to, up to `limit`: the maximum ratio of deflate.
uint64_t MostInflated(uint64_t size, uint64_t limit) {
  constexpr uint64_t kMostRatio = 1032;
  constexpr uint64_t kBegin = 1 << 10;
  return std::min(kMostRatio * size + kBegin, limit);
}

}  // namespace

ServerCall::ServerCall(const CallSite& site, int32_t id, Head head)
    : Holder(site.loop, site.peer->id, site.loop.now(), reinterpret_cast<uintptr_t>(&site.carrier)),
      carrier_(&site.carrier),
      http2_(site.http2),
      context_(site.context),
      loop_(site.loop),
      receiving_(site.context.receiving),
      inflater_(site.inflater),
      id_(id),
      peer_(site.peer),
      head_(std::move(head)),
      arrived_at_(loop_.now()),
      window_(static_cast<int64_t>(receiving_.window())) {}

// ---- Begin and end

void ServerCall::Begin() {
  http2_.Attach(id_, *this);
  const CallHandler& handler = context_.handler;
  if (const int error = head_.HttpError(); error != 0) {
    http2_.RefuseHttp(id_, error, head_.is_head());
    return Abandon();
  }
  method_ = handler.Find(head_.path());
  absl::Status status = head_.Check();
  if (status.ok()) status = handler.Authorize(method_, head_.TakeAuthorization());
  if (status.ok() && method_ >= 0) status = TakePlace(handler.Watches(method_));
  if (status.ok() && method_ < 0) {
    status = absl::UnimplementedError(absl::StrCat(
        "this server has no method ", absl::string_view(head_.path()).substr(0, kMostPath)));
  }
  if (!status.ok()) {
    http2_.SendTrailersOnly(id_, handler.Refuse(*this, method_, status));
    return Abandon();
  }
  has_call_ = true;
  if (head_.timeout().has_value()) loop_.timers().Set(*this, arrived_at_ + *head_.timeout());
  loop_.Post(starter_);
}

// Finds a place in the table of calls, or in that of calls that only wait for news.
absl::Status ServerCall::TakePlace(bool watches) {
  scheduling::PlaceTable& table = watches ? context_.watches : context_.calls;
  if (table.Take(place_, *this, 1)) return absl::OkStatus();
  if (!table.Within(peer(), 1)) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                          "this client has ", table.Of(peer()), " calls open; one client may have ",
                          scheduling::ShareOfOnePeer(table.most()), " of the ", table.most(),
                          " that the server allows; end some, then try again")),
                      "PEER_SHARE");
  }
  return WithReason(absl::UnavailableError(absl::StrCat("the server is busy: it has ",
                                                        table.taken(), " calls open and allows ",
                                                        table.most(), "; try again later")),
                    "TOO_MANY_CALLS");
}

// No call is started for the stream, and its further input is dropped.
void ServerCall::Abandon() {
  http2_.Detach(id_);
  http_closed_ = true;
  interrupted_ = true;
  MaybeClosed();
}

// If the client has already cancelled, the call has cost nothing so far.
void ServerCall::Start() {
  if (http_closed_) return End();
  context_.handler.Begin(*this);
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
    buffer_ = memory::Buffer();
    receiving_.Release(*this);
  }
  DropKept();
  // A response that is being sent is cut off; before that the call can still send a status.
  if (written_ != nullptr || finished_ != nullptr) CutOff();
  if (read_ != nullptr) CompleteRead(false);
  if (waits_for_ != nullptr) std::exchange(waits_for_, nullptr)->Cancel();
}

// A reset also expresses a status: gRPC clients read CANCEL as CANCELLED, which would be final, and
// REFUSED_STREAM as UNAVAILABLE, for calls that may be repeated elsewhere. All of ours may.
void ServerCall::CutOff() {
  if (carrier_ == nullptr || http_closed_ || std::exchange(cut_off_, true)) return;
  const bool elsewhere = interrupted() && absl::IsUnavailable(interruption_);
  http2_.Reset(id_, elsewhere ? NGHTTP2_REFUSED_STREAM : NGHTTP2_CANCEL);
}

void ServerCall::Look(Clock::time_point now, bool anyone_waits) {
  const Limits& limits = context_.limits;
  if (waits_for_room_ && now - waits_since_ > limits.queue_timeout) {
    WaitedTooLong();
  } else if (sending() && !cut_off_ && anyone_waits && pace_.TooSlow(now, limits.stall)) {
    GiveUpResponse();
    CutOff();  // also a call that was interrupted before, and could not say so
  } else if (ends() && !HasRoom()) {
    // There was room when it ended; another stream has taken it.
    DropUnsent();
    Send();
  }
}

void ServerCall::GiveUpResponse() {
  NoteAbuse(context_.counters, AbuseAction::kAnswerStalled, peer_->name);
  Interrupt(absl::CancelledError("the client read its response too slowly while others waited"));
}

// Its place, or the memory of its upload, is another's.
void ServerCall::OnDisplaced() {
  if (carrier_ == nullptr) return MaybeDelete();
  if (Upload::lost()) {
    NoteAbuse(context_.counters, AbuseAction::kUploadStalled, peer_->name);
    Interrupt(WithReason(absl::UnavailableError(absl::StrCat(
                             "the upload stopped at ", received_, " of ", total_,
                             " bytes while others waited for its memory; try again later")),
                         "UPLOAD_STALLED"));
  } else if (!sending()) {
    NoteAbuse(context_.counters, AbuseAction::kCallEvicted, peer_->name);
    Interrupt(WithReason(
        absl::UnavailableError("the call stood still (--stall_timeout) while others waited for its "
                               "place; try again later"),
        "TOO_MANY_CALLS"));
  } else {
    GiveUpResponse();
    // Frames that the socket does not take keep their memory.
    if (sent_ < pulled_ && carrier_->CloseIfBlocked()) return;
    CutOff();
  }
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

void ServerCall::OnConnectionClosed() {
  sent_ = pulled_;
  OnClosed();
}

// A frame whose head has been sent must be sent completely: bytes in frames are kept until the
// kernel has them, or the connection is gone.
void ServerCall::MaybeClosed() {
  if (carrier_ != nullptr && sending() && sent_ < pulled_) return;
  closed_ = true;
  loop_.timers().Clear(*this);
  if (carrier_ != nullptr) {
    place_.Give();
    std::exchange(carrier_, nullptr)->Forget(*this);
  }
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

// ---- Sending

void ServerCall::Write(memory::Piece message, loop::Event& written, bool compressed) {
  if (carrier_ == nullptr || http_closed_) {
    written.Complete(false);
    return;
  }
  carrier_->OnMessage();
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
    pace_.Start(loop_.now());
    Moved(loop_.now());
    Send();
  }
  if (!remote_end_) carrier_->Answered(size);
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

// Has the codec send what there is.
void ServerCall::Send() {
  if (headers_sent_ && nothing_left()) {
    SendTrailers();  // not after a data frame, which would need a window
  } else if (headers_sent_) {
    http2_.Resume(id_);
  } else if (sending() || !initial_metadata_.empty()) {
    http2_.SendHeaders(id_, *this, initial_metadata_, out_encoding_);
  } else {
    http2_.SendTrailersOnly(id_, finish_);
  }
  headers_sent_ = true;
  if (finishing_) carrier_->Answered(unpulled() + unmade_);
}

void ServerCall::SendTrailers() {
  if (!std::exchange(trailers_submitted_, true)) http2_.SendTrailers(id_, finish_);
}

Stream::Offer ServerCall::NextFrame(size_t most) {
  const bool made = MakeMore();
  offered_ = std::min(most, unpulled());
  const bool ends =
      finishing_ && !trailers_submitted_ && offered_ == unpulled() && nothing_behind();
  if (ends) SendTrailers();
  return {offered_, made, ends};
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
  const uint8_t* const bytes = std::exchange(next_byte_, next_byte_ + size);
  // Its call may have ended while the frame waited, and the stream may have used up the window.
  if (nothing_left()) SendTrailers();
  return bytes;
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
  if (sending() && !http_closed_) Send();
}

void ServerCall::Finish(const wire::CallStatus& status, loop::Event& finished) {
  Idle(loop_.now());
  finished_ = &finished;
  if (closed_) return CompleteFinish();
  if (http_closed_) return;  // bytes of it are still being sent
  finish_ = status;
  finishing_ = true;
  if (interrupted() && !HasRoom()) DropUnsent();
  Send();
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

void ServerCall::Sent(size_t size) {
  sent_ += size;
  pace_.Moved(loop_.now(), size, context_.limits.min_rate);
  MovedBytes(size);
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

void ServerCall::MovedBytes(size_t bytes) { Moved(loop_.now(), bytes, context_.limits.min_rate); }

// ---- Receiving

void ServerCall::OnFrame(size_t bytes) {
  window_ -= static_cast<int64_t>(bytes);
  frame_left_ = bytes;
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
  const uint64_t most = context_.handler.MostBytes(method_);
  if (total_ > most) {
    Interrupt(WithReason(absl::ResourceExhaustedError(absl::StrCat(
                             "the request takes ", total_, " bytes, this method allows ", most)),
                         "MESSAGE_TOO_LARGE"));
    return;
  }
  const uint64_t limit = context_.limits.max_message_bytes;
  if (total_ > limit) {
    Interrupt(WithReason(absl::ResourceExhaustedError(absl::StrCat(
                             "the request takes ", total_, " bytes, the server allows ", limit,
                             " (", context_.limits.message_flag, ")")),
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
  buffer_ = context_.pool.Allocate(room);
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
  memory::Buffer whole = context_.pool.Allocate(total_);
  if (whole.data() == nullptr) {
    Interrupt(absl::ResourceExhaustedError(absl::StrCat("the system has no ", total_, " bytes")));
    return false;
  }
  std::memcpy(whole.data(), buffer_.data(), received_);
  buffer_ = std::move(whole);
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
  http2_.Grant(id_, more);
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
  if (prefix_[0] != 0) {
    incoming_ = Incoming::kCompressed;
    Inflate();
    return;
  }
  incoming_ = Incoming::kComplete;
  if (read_ != nullptr) CompleteRead(true);
}

// A compressed message has arrived completely. It continues when there is room for its inflated
// size.
void ServerCall::Inflate() {
  if (!has_call_) return;
  if (charge_ > receiving_.window()) {
    const bool reserved = receiving_.Extend(*this, charge_).reserved;
    if (!reserved && !waits_for_room_) waits_since_ = Clock::now();
    waits_for_room_ = !reserved;
    if (!reserved) return;
  }
  const uint64_t most = std::min<uint64_t>(charge_ - total_, context_.limits.max_message_bytes);
  inflater_.Add(*this, peer(), head_.encoding(), {buffer_.data(), total_}, most);
}

void ServerCall::OnInflated(const absl::Status& status, memory::Buffer buffer, size_t size) {
  if (!status.ok()) {
    const bool too_large = absl::IsResourceExhausted(status);
    Interrupt(too_large ? WithReason(status, "MESSAGE_TOO_LARGE") : status);
    MaybeDelete();
    return;
  }
  buffer_ = std::move(buffer);
  total_ = size;
  incoming_ = Incoming::kComplete;
  if (read_ != nullptr) CompleteRead(true);
}

void ServerCall::CompleteRead(bool ok) {
  if (ok) {
    Busy();  // until it is taken
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
  Idle(loop_.now());
  receiving_.Release(*this);
  if (incoming_ != Incoming::kRead) return;
  incoming_ = Incoming::kPrefix;
  if (interrupted() || carrier_ == nullptr) return;
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
  if (carrier_ != nullptr && !interrupted()) {
    if (incoming_ == Incoming::kBody) AskForMore();
    if (incoming_ == Incoming::kCompressed && waits_for_room_) Inflate();
  }
  MaybeDelete();
}

void ServerCall::WaitedTooLong() {
  const auto timeout = context_.limits.queue_timeout.count();
  Interrupt(WithReason(absl::UnavailableError(absl::StrCat(
                           "the server is busy: a message of ", total_, " bytes has waited for ",
                           timeout, " ms for room (--queue_timeout); try again later")),
                       "QUEUE_TIMEOUT"));
}

}  // namespace quantd::transport
