#include "server/transport/http2.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

namespace quantd::transport {
namespace {

constexpr uint32_t kMaxFrameBytes = 128 << 10;
constexpr uint32_t kMaxFrameSent = 64 << 10;
constexpr int32_t kConnectionWindow = 1 << 30;
// This many bytes of a header block cost as much as a useless frame.
constexpr double kBlockBytes = 1 << 10;
// The most bytes of a GOAWAY, with its debug data: nghttp2 keeps the whole frame while it arrives.
constexpr size_t kMostGoaway = 8 + (12 << 10);
// The most bytes that are in no message, of the frames that are made before they are written.
constexpr size_t kControlBytes = 32 << 10;
// A frame in nghttp2's queue, without our header fields.
constexpr size_t kItemBytes = 256;

bool IsRequest(const nghttp2_frame& frame) {
  return frame.hd.type == NGHTTP2_HEADERS && frame.headers.cat == NGHTTP2_HCAT_REQUEST;
}
bool IsPaddedData(const nghttp2_frame& frame) {
  return frame.hd.type == NGHTTP2_DATA && (frame.hd.flags & NGHTTP2_FLAG_PADDED) != 0;
}
bool EndsStream(const nghttp2_frame_hd& head) {
  return (head.flags & NGHTTP2_FLAG_END_STREAM) != 0;
}

Http2& Of(void* user_data) { return *static_cast<Http2*>(user_data); }

// An exception must not cross nghttp2's C code.
template <typename Function>
int Guarded(Function function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
}

// ---- Header fields of responses, in nghttp2's form

// The name has static storage; `lasting`: the value, too. What is not lasting is copied on
// submission.
nghttp2_nv Field(absl::string_view name, absl::string_view value, bool lasting) {
  const auto bytes = [](absl::string_view text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  };
  const uint8_t flags =
      NGHTTP2_NV_FLAG_NO_COPY_NAME | (lasting ? NGHTTP2_NV_FLAG_NO_COPY_VALUE : 0);
  return {bytes(name), bytes(value), name.size(), value.size(), flags};
}

using Fields = absl::InlinedVector<nghttp2_nv, 6>;

// A service's own fields. This object and the metadata must live until they are submitted.
class MetadataFields {
 public:
  explicit MetadataFields(const Metadata& metadata) : metadata_(metadata) {
    for (const auto& pair : metadata) values_.push_back(EncodeMetadata(pair.first, pair.second));
  }
  void AddTo(Fields& fields) const {
    for (size_t i = 0; i < values_.size(); ++i) {
      fields.push_back(Field(metadata_[i].first, values_[i], false));
      fields.back().flags = NGHTTP2_NV_FLAG_NONE;  // the name is copied, too
    }
  }

 private:
  const Metadata& metadata_;
  std::vector<std::string> values_;
};

// The fields of a status. The strings must live until they are submitted.
class StatusFields {
 public:
  explicit StatusFields(const wire::CallStatus& status)
      : code_(absl::StrCat(status.code)),
        message_(PercentEncode(status.message)),
        details_(Base64Encode(status.details)),
        metadata_(status.metadata) {}

  void AddTo(Fields& fields) const {
    fields.push_back(Field("grpc-status", code_, false));
    if (!message_.empty()) fields.push_back(Field("grpc-message", message_, false));
    if (!details_.empty()) fields.push_back(Field("grpc-status-details-bin", details_, false));
    metadata_.AddTo(fields);
  }
  // Bytes that they take, about.
  size_t size() const { return message_.size() + details_.size() + 128; }

 private:
  const std::string code_, message_, details_;
  const MetadataFields metadata_;
};

// The response's first fields, with the compression that is understood.
Fields Headers() {
  return {Field(":status", "200", true), Field("content-type", "application/grpc", true),
          Field("grpc-accept-encoding", kEncodings, true)};
}

}  // namespace

// ---- nghttp2's callbacks and options

nghttp2_session_callbacks* Http2::MakeCallbacks() {
  using Session = nghttp2_session;
  nghttp2_session_callbacks* all = nullptr;
  if (nghttp2_session_callbacks_new(&all) != 0) return nullptr;
  nghttp2_session_callbacks_set_on_begin_headers_callback(
      all, [](Session*, const nghttp2_frame* frame, void* user_data) {
        return Guarded([&] { return Of(user_data).OnBeginHeaders(*frame); });
      });
  nghttp2_session_callbacks_set_on_header_callback(
      all, [](Session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
              const uint8_t* value, size_t value_size, uint8_t, void* user_data) {
        return Guarded([&] {
          return Of(user_data).OnHeader(*frame, {reinterpret_cast<const char*>(name), name_size},
                                        {reinterpret_cast<const char*>(value), value_size});
        });
      });
  nghttp2_session_callbacks_set_on_begin_frame_callback(
      all, [](Session*, const nghttp2_frame_hd* head, void* user_data) {
        return Guarded([&] { return Of(user_data).OnBeginFrame(*head); });
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      all, [](Session*, const nghttp2_frame* frame, void* user_data) {
        return Guarded([&] { return Of(user_data).OnFrame(*frame); });
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      all, [](Session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* user_data) {
        return Guarded([&] { return Of(user_data).OnData(id, data, size); });
      });
  nghttp2_session_callbacks_set_on_frame_send_callback(
      all, [](Session*, const nghttp2_frame* frame, void* user_data) {
        return Guarded([&] { return Of(user_data).OnFrameSent(*frame); });
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      all, [](Session*, int32_t id, uint32_t, void* user_data) {
        return Guarded([&] { return Of(user_data).OnStreamClosed(id); });
      });
  nghttp2_session_callbacks_set_data_source_read_length_callback(
      all, [](Session*, uint8_t, int32_t, int32_t, int32_t, uint32_t most, void*) -> ssize_t {
        return std::min(most, kMaxFrameSent);
      });
  nghttp2_session_callbacks_set_send_data_callback(
      all, [](Session*, nghttp2_frame*, const uint8_t* head, size_t length,
              nghttp2_data_source* source, void* user_data) {
        return Guarded([&] {
          return Of(user_data).OnSendData(*static_cast<Stream*>(source->ptr), head, length);
        });
      });
  return all;
}

nghttp2_option* Http2::MakeOptions() {
  nghttp2_option* options = nullptr;
  if (nghttp2_option_new(&options) != 0) return nullptr;
  // The streams grant windows, as memory allows.
  nghttp2_option_set_no_auto_window_update(options, 1);
  nghttp2_option_set_no_closed_streams(options, 1);
  // White space around a value is stripped (Head::Add) instead of refused.
  nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(options, 1);
  // A client may cancel any number of calls: see FrameCredit.
  constexpr uint64_t kPlenty = uint64_t{1} << 40;
  nghttp2_option_set_stream_reset_rate_limit(options, kPlenty, kPlenty);
  return options;
}

bool Http2::Begin(uint32_t max_streams, uint32_t window) {
  static nghttp2_session_callbacks* const callbacks = MakeCallbacks();
  static nghttp2_option* const options = MakeOptions();
  if (callbacks == nullptr || options == nullptr ||
      nghttp2_session_server_new2(&session_, callbacks, this, options) != 0) {
    return false;
  }
  const std::array<nghttp2_settings_entry, 4> settings = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, max_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, kMaxFrameBytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, Head::kMaxBytes},
  }};
  return nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) ==
             0 &&
         nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow) ==
             0;
}

// ---- Input

Http2::Fed Http2::Feed(const uint8_t* data, size_t size) {
  if (!ended_for_headers_) {
    const uint64_t before = walk_.blocks() + walk_.continuations();
    walk_.Walk(data, size);
    // Counts heads of calls, and also blocks that are refused or skipped.
    credit_.Spend(static_cast<double>(walk_.blocks() + walk_.continuations() - before));
    if (walk_.in_block())
      credit_.Spend(static_cast<double>(std::min(size, walk_.block_bytes())) / kBlockBytes);
    if (walk_.block_bytes() > kMostBlockBytes) EndForHeaders();
  }
  const ssize_t used = nghttp2_session_mem_recv(session_, data, size);
  if (const uint32_t error = walk_.error(); error != NGHTTP2_NO_ERROR) {
    nghttp2_session_terminate_session(session_, error);
    owner_.OnOutput();
  } else if (const int32_t late = walk_.TakeLate(); late != 0) {
    Reset(late, NGHTTP2_STREAM_CLOSED);
  }
  if (used == NGHTTP2_ERR_BAD_CLIENT_MAGIC) return Fed::kNotHttp2;
  return used >= 0 ? Fed::kOk : Fed::kBroken;
}

int Http2::OnBeginHeaders(const nghttp2_frame& frame) {
  block_decoded_ = 0;
  if (!IsRequest(frame)) return 0;
  head_ = Head();
  return 0;
}

int Http2::OnHeader(const nghttp2_frame& frame, absl::string_view name, absl::string_view value) {
  const size_t bytes = name.size() + value.size() + Head::kFieldOverhead;
  block_decoded_ += bytes;
  credit_.SpendFields(bytes);
  if (block_decoded_ > kMostBlockBytes) {
    EndForHeaders();
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // the rest of the block is skipped
  }
  if (IsRequest(frame) && head_.Add(name, value) && owner_.Keeps(name)) head_.Keep(name, value);
  return 0;
}

// Ends the connection with an HTTP/2 error, once; its input is ignored from then on.
void Http2::EndForHeaders() {
  if (std::exchange(ended_for_headers_, true)) return;
  owner_.OnBroken(true);
  nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
  owner_.OnOutput();
}

int Http2::OnBeginFrame(const nghttp2_frame_hd& head) {
  frame_stream_ = nullptr;
  frame_left_ = 0;
  switch (head.type) {
    case NGHTTP2_DATA:
      frame_stream_ = Find(head.stream_id);
      frame_left_ = (head.flags & NGHTTP2_FLAG_PADDED) != 0 ? 0 : head.length;
      if (frame_stream_ != nullptr) frame_stream_->OnFrame(head.length);
      if (head.length < FrameCredit::kCrumb && !EndsStream(head)) credit_.Spend(1);
      break;
    case NGHTTP2_HEADERS:
      break;
    case NGHTTP2_SETTINGS:
      // A change of the window is applied to every stream.
      credit_.Spend(1 + static_cast<double>(head.length) / 6 *
                            (1 + static_cast<double>(owner_.calls() + refusals_.size()) / 8));
      break;
    case NGHTTP2_GOAWAY:
      credit_.Spend(1);
      if (head.length > kMostGoaway) return NGHTTP2_ERR_CALLBACK_FAILURE;
      break;
    default:
      credit_.Spend(1);
  }
  return 0;
}

int Http2::OnFrame(const nghttp2_frame& frame) {
  const int32_t id = frame.hd.stream_id;
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
      if (IsRequest(frame)) owner_.OnRequest(id, std::move(head_));
      [[fallthrough]];
    case NGHTTP2_DATA:
      if (Stream* const stream = Find(id); stream != nullptr && IsPaddedData(frame)) {
        stream->OnPadding(nghttp2_session_get_stream_local_window_size(session_, id));
      }
      // A refused stream is gone at this point.
      if (EndsStream(frame.hd)) {
        if (Stream* const still = Find(id)) still->OnRemoteEnd();
      }
      break;
    case NGHTTP2_SETTINGS:
      owner_.OnSettings();
      break;
    case NGHTTP2_PING:
      if ((frame.hd.flags & NGHTTP2_FLAG_ACK) != 0) owner_.OnPong();
      break;
    default:
      break;
  }
  return 0;
}

int Http2::OnData(int32_t id, const uint8_t* data, size_t size) {
  frame_left_ -= std::min(size, frame_left_);
  // The connection's own window is not a limit; those of the streams are.
  nghttp2_session_consume_connection(session_, size);
  credit_.EarnBytes(size);
  if (Stream* const stream = Find(id)) stream->OnData(data, size);
  return 0;
}

int Http2::OnStreamClosed(int32_t id) {
  refusals_.erase(id);
  Stream* const stream = Find(id);
  if (stream == nullptr) return 0;
  Detach(id);
  stream->OnClosed();
  return 0;
}

void Http2::Detach(int32_t id) {
  if (frame_stream_ != nullptr && frame_stream_ == Find(id)) frame_stream_ = nullptr;
  nghttp2_session_set_stream_user_data(session_, id, nullptr);
}

// ---- What is sent

void Http2::Grant(int32_t id, int64_t bytes) {
  nghttp2_submit_window_update(session_, NGHTTP2_FLAG_NONE, id, static_cast<int32_t>(bytes));
  owner_.OnOutput();
}

int64_t Http2::Room(int32_t id) const {
  return std::min(nghttp2_session_get_stream_remote_window_size(session_, id),
                  nghttp2_session_get_remote_window_size(session_));
}

void Http2::SendHeaders(int32_t id, Stream& stream, const Metadata& metadata, Encoding encoding) {
  Fields fields = Headers();
  const MetadataFields of_metadata(metadata);
  of_metadata.AddTo(fields);
  if (encoding != Encoding::kIdentity) {
    fields.push_back(Field("grpc-encoding", NameOf(encoding), true));
  }
  nghttp2_data_provider provider;
  provider.source.ptr = &stream;
  provider.read_callback = WantData;
  nghttp2_submit_response(session_, id, fields.data(), fields.size(), &provider);
  owner_.OnOutput();
}

void Http2::Resume(int32_t id) {
  nghttp2_session_resume_data(session_, id);  // unless it resumes by itself
  owner_.OnOutput();
}

void Http2::SendTrailersOnly(int32_t id, const wire::CallStatus& status) {
  Fields fields = Headers();
  const StatusFields of_status(status);
  of_status.AddTo(fields);
  submitted_ += of_status.size();
  nghttp2_submit_response(session_, id, fields.data(), fields.size(), nullptr);
  owner_.OnOutput();
}

void Http2::SendTrailers(int32_t id, const wire::CallStatus& status) {
  Fields fields;
  const StatusFields of_status(status);
  of_status.AddTo(fields);
  submitted_ += of_status.size();
  nghttp2_submit_trailer(session_, id, fields.data(), fields.size());
  owner_.OnOutput();
}

void Http2::RefuseHttp(int32_t id, int http_status, bool is_head) {
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
  if (nghttp2_submit_response(session_, id, fields.data(), fields.size(),
                              is_head ? nullptr : &provider) != 0) {
    throw std::bad_alloc();
  }
  refusals_.insert(id);
  owner_.OnOutput();
}

void Http2::ResetRefusals() {
  for (const int32_t id : std::exchange(refusals_, {})) Reset(id, NGHTTP2_CANCEL);
}

void Http2::Reset(int32_t id, uint32_t code) {
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, code);
  owner_.OnOutput();
}

void Http2::Ping() {
  nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
  owner_.OnOutput();
}

void Http2::Announce() {
  nghttp2_submit_shutdown_notice(session_);
  owner_.OnOutput();
}

void Http2::GoAway() {
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                        nullptr, 0);
  owner_.OnOutput();
}

// ---- Output

ssize_t Http2::WantData(nghttp2_session*, int32_t, uint8_t*, size_t length, uint32_t* flags,
                        nghttp2_data_source* source, void* user_data) try {
  const Stream::Offer offer = static_cast<Stream*>(source->ptr)->NextFrame(length);
  if (offer.made) ++Of(user_data).made_;
  if (offer.size == 0 && !offer.ends) return NGHTTP2_ERR_DEFERRED;
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (offer.ends) *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
  return static_cast<ssize_t>(offer.size);
} catch (const std::bad_alloc&) {
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

int Http2::OnSendData(Stream& stream, const uint8_t* frame_head, size_t length) {
  if (full()) return NGHTTP2_ERR_WOULDBLOCK;
  AddControl(frame_head, kFrameHead);
  if (length == 0) return 0;
  segments_.push_back({&stream, stream.Pull(length), length});
  queued_ += length;
  return 0;
}

int Http2::OnFrameSent(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_GOAWAY && frame.goaway.error_code != NGHTTP2_NO_ERROR &&
      !ended_for_headers_) {
    owner_.OnBroken(false);
  }
  const bool may_end = frame.hd.type == NGHTTP2_HEADERS || frame.hd.type == NGHTTP2_DATA;
  if (!may_end || !EndsStream(frame.hd)) return 0;
  const int32_t id = frame.hd.stream_id;
  if (Stream* const stream = Find(id)) {
    stream->OnEndSent();
    credit_.EarnMessage();
  }
  // A client that still sends is told to stop, without an error code.
  if (nghttp2_session_get_stream_remote_close(session_, id) == 0) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
  }
  return 0;
}

bool Http2::Fill() {
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

void Http2::AddControl(const uint8_t* data, size_t size) {
  control_.append(reinterpret_cast<const char*>(data), size);
  if (segments_.empty() || segments_.back().stream != nullptr) {
    segments_.push_back({nullptr, nullptr, 0});
  }
  segments_.back().size += size;
  queued_ += size;
}

size_t Http2::Pieces(absl::Span<iovec> pieces) {
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
  return count;
}

void Http2::Wrote(size_t bytes) {
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
  // Frees bytes that were sent, even if the buffer is never empty.
  if (control_sent_ == control_.size() && control_.capacity() <= kControlBytes / 2) {
    control_.clear();
    control_sent_ = 0;
  } else if (control_sent_ == control_.size() || control_sent_ > kControlBytes / 2) {
    control_ = control_.substr(control_sent_);
    control_sent_ = 0;
  }
}

size_t Http2::unsent() const {
  if (session_ == nullptr) return 0;
  return control_.size() - control_sent_ + submitted_ +
         nghttp2_session_get_outbound_queue_size(session_) * kItemBytes;
}

}  // namespace quantd::transport
