// HTTP/2 and gRPC's use of it. See connection.h.
//
// A call consists of request headers, messages in DATA frames, and the end of the stream. It is
// answered by headers, messages and trailers with the status, or by trailers only. nghttp2 itself
// limits acknowledgements that wait to be sent, CONTINUATION frames, settings in a frame, frame
// sizes and flow control.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/transport/connection.h"
#include "server/transport/connection_set.h"
#include "server/transport/header_fields.h"
#include "server/wire/call_status.h"

namespace quantd::transport {
namespace {

// The most bytes of a path that is repeated in an error, because clients may invent it.
constexpr size_t kMostPath = 256;
// This many bytes of a header block cost as much as a useless frame.
constexpr double kBlockBytes = 1 << 10;
// The most bytes of a GOAWAY, with its debug data.
constexpr size_t kMostGoaway = 8 + (12 << 10);

bool IsRequest(const nghttp2_frame& frame) {
  return frame.hd.type == NGHTTP2_HEADERS && frame.headers.cat == NGHTTP2_HCAT_REQUEST;
}
bool IsPaddedData(const nghttp2_frame& frame) {
  return frame.hd.type == NGHTTP2_DATA && (frame.hd.flags & NGHTTP2_FLAG_PADDED) != 0;
}
bool EndsStream(const nghttp2_frame_hd& head) {
  return (head.flags & NGHTTP2_FLAG_END_STREAM) != 0;
}

}  // namespace

// ---- Input

bool Connection::Feed(const uint8_t* data, size_t size) {
  if (!ended_for_headers_) {
    const uint64_t before = walk_.blocks() + walk_.continuations();
    walk_.Walk(data, size);
    // Counts heads of calls, and also blocks that are refused or skipped.
    credit_.Spend(static_cast<double>(walk_.blocks() + walk_.continuations() - before));
    if (walk_.in_block())
      credit_.Spend(static_cast<double>(std::min(size, walk_.block_bytes())) / kBlockBytes);
    if (walk_.block_bytes() > Head::kMaxBytes * 2) EndForHeaders();
  }
  feeding_ = true;
  const ssize_t used = nghttp2_session_mem_recv(session_, data, size);
  feeding_ = false;
  if (const uint32_t error = walk_.closed_streams().error(); error != NGHTTP2_NO_ERROR) {
    nghttp2_session_terminate_session(session_, error);
    WantFlush();
  } else if (const int32_t late = walk_.closed_streams().TakeLate(); late != 0) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, late, NGHTTP2_STREAM_CLOSED);
    WantFlush();
  }
  if (used == NGHTTP2_ERR_BAD_CLIENT_MAGIC) {
    // A browser or curl connected by mistake: answer in HTTP/1.1.
    constexpr absl::string_view kResponse =
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 46\r\n"
        "Connection: close\r\n\r\nThis port speaks gRPC, which is HTTP/2 only.\r\n";
    SayAtOnce(kResponse);
  }
  return used >= 0;
}

ServerCall* Connection::Find(int32_t id) const {
  return static_cast<ServerCall*>(nghttp2_session_get_stream_user_data(session_, id));
}

int Connection::OnBeginHeaders(const nghttp2_frame& frame) {
  block_decoded_ = 0;
  if (!IsRequest(frame)) return 0;
  auto* const stream = new ServerCall(*this, frame.hd.stream_id);
  nghttp2_session_set_stream_user_data(session_, frame.hd.stream_id, stream);
  stream->next_ = streams_;
  if (streams_ != nullptr) streams_->previous_ = stream;
  streams_ = stream;
  ++stream_count_;
  context_.counters.calls.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

int Connection::OnHeader(const nghttp2_frame& frame, absl::string_view name,
                         absl::string_view value) {
  if (!CountField(name.size() + value.size() + Head::kFieldOverhead)) {
    EndForHeaders();
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // the rest of the block is skipped
  }
  if (!IsRequest(frame)) return 0;
  ServerCall* const stream = Find(frame.hd.stream_id);
  if (stream == nullptr) return 0;
  const bool taken = stream->head_.Add(name, value);
  if (taken && context_.handler.Keeps(name)) stream->head_.Keep(name, value);
  return 0;
}

int Connection::OnBeginFrame(const nghttp2_frame_hd& head) {
  frame_stream_ = nullptr;
  frame_left_ = 0;
  switch (head.type) {
    case NGHTTP2_DATA:
      frame_stream_ = Find(head.stream_id);
      // In a padded frame the end of the data is not known in advance, so it is not read in place.
      frame_left_ = (head.flags & NGHTTP2_FLAG_PADDED) != 0 ? 0 : head.length;
      if (frame_stream_ != nullptr) frame_stream_->OnFrame(head.length, EndsStream(head));
      if (head.length < FrameCredit::kCrumb && !EndsStream(head)) credit_.Spend(1);
      break;
    case NGHTTP2_HEADERS:
      break;
    case NGHTTP2_SETTINGS:
      // A change of the window is applied to every stream.
      credit_.Spend(1 + static_cast<double>(head.length) / 6 *
                            (1 + static_cast<double>(stream_count_ + http_refusals_.size()) / 8));
      break;
    case NGHTTP2_GOAWAY:
      credit_.Spend(1);
      // nghttp2 buffers the whole frame while it arrives.
      if (head.length > kMostGoaway) return NGHTTP2_ERR_CALLBACK_FAILURE;
      break;
    default:
      credit_.Spend(1);
  }
  return 0;
}

int Connection::OnFrame(const nghttp2_frame& frame) {
  ServerCall* const stream = frame.hd.stream_id == 0 ? nullptr : Find(frame.hd.stream_id);
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
      if (stream != nullptr && IsRequest(frame)) OnCall(*stream);
      [[fallthrough]];
    case NGHTTP2_DATA:
      if (stream != nullptr && IsPaddedData(frame)) {
        stream->OnPadding(nghttp2_session_get_stream_local_window_size(session_, stream->id_));
      }
      // A refused stream is gone at this point.
      if (EndsStream(frame.hd)) {
        if (ServerCall* const still = Find(frame.hd.stream_id)) still->OnRemoteEnd();
      }
      break;
    case NGHTTP2_SETTINGS:
      peer_spoke_ = true;
      break;
    case NGHTTP2_PING:
      if ((frame.hd.flags & NGHTTP2_FLAG_ACK) != 0) OnPingAnswered();
      break;
    default:
      break;
  }
  return 0;
}

int Connection::OnData(int32_t id, const uint8_t* data, size_t size) {
  frame_left_ -= std::min(size, frame_left_);
  // The connection's own window is not a limit; those of the streams are.
  nghttp2_session_consume_connection(session_, size);
  credit_.EarnBytes(size);
  if (ServerCall* const stream = Find(id)) stream->OnData(data, size);
  return 0;
}

void Connection::OnCall(ServerCall& stream) {
  const CallHandler& handler = context_.handler;
  if (const int error = stream.head_.HttpError(); error != 0) return RefuseHttp(stream, error);
  const int method = handler.Find(stream.head_.path());
  absl::Status status = stream.head_.Check();
  if (status.ok()) status = handler.Authorize(method, stream.head_.TakeAuthorization());
  if (status.ok() && method >= 0) status = FindPlace(stream, handler.Watches(method));
  if (!status.ok()) {
    // The call is refused, whatever its method.
  } else if (method < 0) {
    status = absl::UnimplementedError(absl::StrCat(
        "this server has no method ", absl::string_view(stream.head_.path()).substr(0, kMostPath)));
  }
  if (!status.ok()) return Refuse(stream, handler.Refuse(stream, method, status));
  stream.Begin(method);
}

// Finds a place in the table of calls, or in that of calls that only wait for news.
absl::Status Connection::FindPlace(ServerCall& stream, bool watches) {
  Counters& counters = context_.counters;
  if (watches) {
    stream.watches_ = true;
    counters.calls.fetch_sub(1, std::memory_order_relaxed);
    counters.watches.fetch_add(1, std::memory_order_relaxed);
  }
  scheduling::PlaceTable& table = watches ? context_.watches : context_.calls;
  if (table.Take(stream.place_, stream, 1)) return absl::OkStatus();
  if (!table.Within(peer_.id, 1)) {
    return wire::WithReason(
        absl::ResourceExhaustedError(absl::StrCat(
            "this client has ", table.Of(peer_.id), " calls open; one client may have ",
            scheduling::ShareOfOnePeer(table.most()), " of the ", table.most(),
            " that the server allows; end some, then try again")),
        "PEER_SHARE");
  }
  return wire::WithReason(absl::UnavailableError(absl::StrCat(
                              "the server is busy: it has ", table.taken(),
                              " calls open and allows ", table.most(), "; try again later")),
                          "TOO_MANY_CALLS");
}

// ---- Output

void Connection::GrantWindow(ServerCall& stream, int64_t bytes) {
  nghttp2_submit_window_update(session_, NGHTTP2_FLAG_NONE, stream.id_,
                               static_cast<int32_t>(bytes));
  has_grants_ = true;
  WantFlush();
}

// A reset also expresses a status: gRPC clients read CANCEL as CANCELLED, which would be final, and
// REFUSED_STREAM as UNAVAILABLE, for calls that may be repeated elsewhere. All of ours may.
void Connection::Reset(ServerCall& stream) {
  const bool elsewhere = stream.interrupted() && absl::IsUnavailable(stream.interruption());
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream.id_,
                            elsewhere ? NGHTTP2_REFUSED_STREAM : NGHTTP2_CANCEL);
  WantFlush();
}

void Connection::Send(ServerCall& stream) {
  const bool only_trailers = stream.finishing_ && stream.unpulled() == 0 && stream.nothing_behind();
  if (stream.headers_sent_ && only_trailers) {
    SubmitTrailers(stream);  // not after a data frame, which would need a window
  } else if (stream.headers_sent_) {
    nghttp2_session_resume_data(session_, stream.id_);  // unless it resumes by itself
  } else if (stream.sending() || !stream.initial_metadata_.empty()) {
    SubmitHeaders(stream);
  } else {
    SubmitTrailersOnly(stream, stream.finish_);
  }
  stream.headers_sent_ = true;
  WantFlush();
  if (stream.finishing_) Answered(stream.unpulled() + stream.unmade_);
}

bool Connection::HasRoomFor(const ServerCall& stream) const {
  const int32_t room = std::min(nghttp2_session_get_stream_remote_window_size(session_, stream.id_),
                                nghttp2_session_get_remote_window_size(session_));
  return stream.unsent() == 0 || static_cast<int64_t>(stream.unsent()) <= room;
}

void Connection::SubmitHeaders(ServerCall& stream) {
  Fields fields = Headers();
  const MetadataFields metadata(stream.initial_metadata_);
  metadata.AddTo(fields);
  if (stream.out_encoding_ != Encoding::kIdentity) {
    fields.push_back(Field("grpc-encoding", NameOf(stream.out_encoding_), true));
  }
  nghttp2_data_provider provider;
  provider.source.ptr = &stream;
  provider.read_callback = WantData;
  nghttp2_submit_response(session_, stream.id_, fields.data(), fields.size(), &provider);
}

void Connection::SubmitTrailersOnly(ServerCall& stream, const wire::CallStatus& status) {
  Fields fields = Headers();
  const StatusFields of_status(status);
  of_status.AddTo(fields);
  submitted_ += of_status.size();
  nghttp2_submit_response(session_, stream.id_, fields.data(), fields.size(), nullptr);
}

void Connection::SubmitTrailers(ServerCall& stream) {
  if (std::exchange(stream.trailers_submitted_, true)) return;
  Fields fields;
  const StatusFields of_status(stream.finish_);
  of_status.AddTo(fields);
  submitted_ += of_status.size();
  nghttp2_submit_trailer(session_, stream.id_, fields.data(), fields.size());
}

// No call is started for the stream, and its further input is dropped.
void Connection::Refuse(ServerCall& stream, const wire::CallStatus& status) {
  SubmitTrailersOnly(stream, status);
  Abandon(stream);
}

void Connection::RefuseHttp(ServerCall& stream, int http_status) {
  const std::string code = absl::StrCat(http_status);
  const Fields fields = {Field(":status", code, false), Field("content-type", "text/plain", true)};
  nghttp2_data_provider provider;
  provider.source.fd = 0;  // the number of bytes of the text that were sent
  provider.read_callback = [](nghttp2_session*, int32_t, uint8_t* to, size_t length,
                              uint32_t* flags, nghttp2_data_source* source, void*) -> ssize_t {
    constexpr absl::string_view kText = "This port speaks gRPC: POST, application/grpc.\n";
    const absl::string_view part = kText.substr(static_cast<size_t>(source->fd), length);
    std::memcpy(to, part.data(), part.size());
    source->fd += static_cast<int>(part.size());
    if (static_cast<size_t>(source->fd) == kText.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(part.size());
  };
  if (nghttp2_submit_response(session_, stream.id_, fields.data(), fields.size(),
                              stream.head_.is_head() ? nullptr : &provider) != 0) {
    throw std::bad_alloc();  // propagates until this room ends the connection
  }
  http_refusals_.insert(stream.id_);
  Abandon(stream);
}

void Connection::Abandon(ServerCall& stream) {
  nghttp2_session_set_stream_user_data(session_, stream.id_, nullptr);
  stream.http_closed_ = true;
  stream.interrupted_ = true;
  stream.MaybeClosed();
}

ssize_t Connection::WantData(nghttp2_session*, int32_t, uint8_t*, size_t length, uint32_t* flags,
                             nghttp2_data_source* source, void* user_data) try {
  ServerCall& stream = *static_cast<ServerCall*>(source->ptr);
  auto* const connection = static_cast<Connection*>(user_data);
  if (stream.MakeMore()) ++connection->made_;
  const size_t size = std::min(length, stream.unpulled());
  const bool ends = stream.finishing_ && !stream.trailers_submitted_ && size == stream.unpulled() &&
                    stream.nothing_behind();
  if (size == 0 && !ends) return NGHTTP2_ERR_DEFERRED;
  stream.offered_ = size;
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (ends) {
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    connection->SubmitTrailers(stream);
  }
  return static_cast<ssize_t>(size);
} catch (const std::bad_alloc&) {
  return NGHTTP2_ERR_CALLBACK_FAILURE;  // no exception may cross nghttp2's C code
}

int Connection::OnSendData(ServerCall& stream, const uint8_t* frame_head, size_t length) {
  if (full()) return NGHTTP2_ERR_WOULDBLOCK;
  AddControl(frame_head, 9);
  if (length == 0) return 0;
  segments_.push_back({&stream, stream.Pull(length), length});
  queued_ += length;
  // Its call may have ended while the frame waited, and the stream may have used up the window.
  if (stream.finishing_ && stream.unpulled() == 0 && stream.nothing_behind()) {
    SubmitTrailers(stream);
  }
  return 0;
}

int Connection::OnFrameSent(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_GOAWAY && frame.goaway.error_code != NGHTTP2_NO_ERROR &&
      !ended_for_headers_) {
    Note(ConnectionEnd::kProtocolError);
  }
  const bool may_end = frame.hd.type == NGHTTP2_HEADERS || frame.hd.type == NGHTTP2_DATA;
  if (!may_end || !EndsStream(frame.hd)) return 0;
  if (ServerCall* const stream = Find(frame.hd.stream_id)) {
    stream->trailers_sent_ = true;
    credit_.EarnMessage();
  }
  // A client that still sends is told to stop, without an error code.
  if (nghttp2_session_get_stream_remote_close(session_, frame.hd.stream_id) == 0) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, frame.hd.stream_id, NGHTTP2_NO_ERROR);
  }
  return 0;
}

void Connection::OnStreamClosed(int32_t id) {
  ServerCall* const stream = Find(id);
  http_refusals_.erase(id);
  if (stream == nullptr) return;
  nghttp2_session_set_stream_user_data(session_, id, nullptr);
  stream->OnClosed();
}

void Connection::Forget(ServerCall& stream) {
  if (frame_stream_ == &stream) frame_stream_ = nullptr;
  (stream.previous_ == nullptr ? streams_ : stream.previous_->next_) = stream.next_;
  if (stream.next_ != nullptr) stream.next_->previous_ = stream.previous_;
  --stream_count_;
  Counters& counters = context_.counters;
  (stream.watches_ ? counters.watches : counters.calls).fetch_sub(1, std::memory_order_relaxed);
  (stream.watches_ ? context_.watches : context_.calls).Give(stream.place_);
  if (!closed_) Leave();
}

}  // namespace quantd::transport
