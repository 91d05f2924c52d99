#include "http2_reference.h"

#include <nghttp2/nghttp2.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>

#include "frames.h"
#include "fuzzing.h"
#include "http2_input.h"

namespace quantd::fuzz {
namespace {

using State = ReferenceStream::State;

constexpr size_t kPrefaceBytes = 24;
constexpr size_t kHeadBytes = 9;
constexpr size_t kPrefixBytes = 5;
constexpr uint32_t kMaxFrameBytes = 128 << 10;

// The message that `bytes` contain compressed; nullopt: none, or one of more than `most` bytes.
std::optional<std::string> Inflate(transport::Encoding encoding, const std::string& bytes,
                                   size_t most) {
  z_stream stream = {};
  Require(inflateInit2(&stream, transport::WindowBits(encoding)) == Z_OK, "zlib has memory");
  std::string message(most + 1, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(message.data());
  stream.avail_out = static_cast<uInt>(message.size());
  const bool whole = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0;
  message.resize(stream.total_out);
  inflateEnd(&stream);
  return whole && message.size() <= most ? std::optional(message) : std::nullopt;
}

class Session {
 public:
  Session(uint32_t max_streams, uint32_t window, size_t max_message_bytes)
      : max_message_bytes_(max_message_bytes) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_option* options = nullptr;
    Require(nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&options) == 0,
            "nghttp2 has memory");
    SetCallbacks(callbacks);
    nghttp2_option_set_no_auto_window_update(options, 1);
    nghttp2_option_set_no_closed_streams(options, 1);
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(options, 1);
    constexpr uint64_t kPlenty = uint64_t{1} << 40;
    nghttp2_option_set_stream_reset_rate_limit(options, kPlenty, kPlenty);
    Require(nghttp2_session_server_new2(&session_, callbacks, this, options) == 0,
            "nghttp2 has memory");
    nghttp2_option_del(options);
    nghttp2_session_callbacks_del(callbacks);
    const std::array<nghttp2_settings_entry, 4> settings = {{
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, max_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, kMaxFrameBytes},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, transport::Head::kMaxBytes},
    }};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, 1 << 30);
    Drain();
  }
  ~Session() { nghttp2_session_del(session_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Processes all of `bytes`, as far as the comparison goes.
  Reference Ask(absl::string_view bytes) {
    Take(bytes.substr(0, kPrefaceBytes));
    absl::string_view left = bytes.substr(std::min(kPrefaceBytes, bytes.size()));
    for (const Frame& frame : ParseFrames(left)) {
      if (stopped_ || Stops(frame)) return Result();
      Take(ToBytes(frame));
      Note(frame);
    }
    // The start of one more frame: once its head is complete, it is known what it may do.
    std::string head(left.substr(0, kHeadBytes));
    if (head.size() == kHeadBytes) head[0] = head[1] = head[2] = 0;
    absl::string_view begin = head;
    for (const Frame& frame : ParseFrames(begin)) {
      if (stopped_ || Stops(frame)) return Result();
    }
    if (!stopped_) Take(left);
    return Result();
  }

 private:
  static Session& Of(void* self) { return *static_cast<Session*>(self); }

  static void SetCallbacks(nghttp2_session_callbacks* callbacks) {
    nghttp2_session_callbacks_set_on_begin_headers_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
          Of(self).OnBeginHeaders(*frame);
          return 0;
        });
    nghttp2_session_callbacks_set_on_header_callback(
        callbacks,
        [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
           const uint8_t* value, size_t value_size, uint8_t, void* self) {
          Of(self).OnHeader(*frame, {reinterpret_cast<const char*>(name), name_size},
                            {reinterpret_cast<const char*>(value), value_size});
          return 0;
        });
    nghttp2_session_callbacks_set_on_frame_recv_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
          Of(self).OnFrame(*frame);
          return 0;
        });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        callbacks,
        [](nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* self) {
          Of(self).OnData(id, {reinterpret_cast<const char*>(data), size});
          return 0;
        });
    nghttp2_session_callbacks_set_on_frame_send_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
          Of(self).OnSent(*frame);
          return 0;
        });
  }

  // nghttp2 does not report all frames that it drops.
  void Note(const Frame& frame) {
    ReferenceStream* const stream = Find(static_cast<int32_t>(frame.stream));
    if (stream == nullptr) return;
    if (frame.type == transport::kRstFrame) stream->peer_reset = true;
    const bool ends = (frame.flags & transport::kEndStream) != 0;
    if (ends && stream->state == State::kAnswered) stream->state = State::kOver;
  }

  // Passes it to nghttp2. If the comparison stops at a header block, its effects are undone.
  void Take(absl::string_view bytes) {
    const ssize_t used = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    taken_ += bytes.size();
    if (used < 0) stopped_ = result_.fatal = true;
    Drain();
    if (result_.error != 0) stopped_ = true;
    if (block_stops_) {
      stopped_ = true;
      taken_ = block_began_at_;
      result_.error = 0;
      result_.fatal = false;
      result_.resets = std::move(resets_before_);
      result_.streams.erase(block_stream_);
      if (before_.has_value()) result_.streams[block_stream_] = *std::move(before_);
    }
  }

  void Drain() {
    const uint8_t* data = nullptr;
    while (nghttp2_session_mem_send(session_, &data) > 0) {
    }
  }

  Reference Result() {
    result_.compared = taken_;
    return std::move(result_);
  }

  ReferenceStream* Find(int32_t id) {
    const auto found = result_.streams.find(id);
    return found == result_.streams.end() ? nullptr : &found->second;
  }

  // Whether the transport may behave differently from this frame on.
  bool Stops(const Frame& frame) {
    const auto id = static_cast<int32_t>(frame.stream);
    if (frame.type == transport::kHeadersFrame) block_began_at_ = taken_;
    const bool carries = frame.type == transport::kDataFrame ||
                         frame.type == transport::kHeadersFrame ||
                         frame.type == transport::kWindowFrame;
    if (id == 0 || !carries) return false;
    const ReferenceStream* const stream = Find(id);
    if (stream == nullptr) {
      return id <= last_;  // a number that was skipped, or a stream without a valid head
    }
    if (stream->state == State::kOpen) return false;
    // DATA that no call reads is not checked, unless HTTP/2 still knows the stream.
    const bool plain_data =
        frame.type == transport::kDataFrame && (frame.flags & transport::kPadded) == 0;
    return stream->state != State::kAnswered || !plain_data;
  }

  void OnBeginHeaders(const nghttp2_frame& frame) {
    block_decoded_ = 0;
    block_stream_ = frame.hd.stream_id;
    resets_before_ = result_.resets;
    const ReferenceStream* const stream = Find(block_stream_);
    before_ = stream == nullptr ? std::nullopt : std::optional(*stream);
    block_is_new_ = frame.headers.cat == NGHTTP2_HCAT_REQUEST;
    if (!block_is_new_) return;
    last_ = frame.hd.stream_id;
    result_.streams[last_];
  }

  void OnHeader(const nghttp2_frame& frame, absl::string_view name, absl::string_view value) {
    block_decoded_ += name.size() + value.size() + transport::Head::kFieldOverhead;
    // The transport answers, or ends the connection; and deadlines depend on timing.
    if (block_decoded_ > transport::Head::kMaxBytes || name == "grpc-timeout") block_stops_ = true;
    ReferenceStream* const stream = Find(frame.hd.stream_id);
    if (stream == nullptr) return;
    if (block_is_new_) stream->head.Add(name, value);
    if (name == "content-length") stream->has_length = true;
  }

  void OnFrame(const nghttp2_frame& frame) {
    ReferenceStream* const stream = Find(frame.hd.stream_id);
    if (frame.hd.type == NGHTTP2_GOAWAY) stopped_ = true;  // it reads no more without calls
    if (stream == nullptr) return;
    switch (frame.hd.type) {
      case NGHTTP2_HEADERS:
        if (frame.headers.cat == NGHTTP2_HCAT_REQUEST) OnHead(frame.hd.stream_id, *stream);
        [[fallthrough]];
      case NGHTTP2_DATA:
        if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) OnEnd(frame.hd.stream_id, *stream);
        break;
      case NGHTTP2_RST_STREAM:
        stream->state = State::kReset;
        break;
      default:
        break;
    }
  }

  void OnHead(int32_t id, ReferenceStream& stream) {
    if (stream.head.HttpError() != 0) {
      block_stops_ = true;  // its response is not gRPC's
      return;
    }
    stream.is_call = stream.head.path() == kPath && stream.head.Check().ok();
    if (!stream.is_call) GiveUp(id, stream, absl::StatusCode::kUnimplemented);
  }

  // Nobody reads the rest.
  void GiveUp(int32_t id, ReferenceStream& stream, absl::StatusCode code) {
    stream.end = code;
    stream.state = State::kAnswered;
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
  }

  void OnData(int32_t id, absl::string_view data) {
    ReferenceStream* const stream = Find(id);
    if (stream == nullptr || stream->state != State::kOpen) return;
    stream->left.append(data.data(), data.size());
    absl::StatusCode code = absl::StatusCode::kOk;
    while (code == absl::StatusCode::kOk && stream->left.size() >= kPrefixBytes) {
      if (!TakeMessage(*stream, code)) break;
    }
    if (code != absl::StatusCode::kOk) GiveUp(id, *stream, code);
  }

  // False: it is incomplete.
  bool TakeMessage(ReferenceStream& stream, absl::StatusCode& code) const {
    const auto byte = [&](size_t at) { return size_t{static_cast<uint8_t>(stream.left[at])}; };
    const size_t flag = byte(0);
    const size_t size = byte(1) << 24 | byte(2) << 16 | byte(3) << 8 | byte(4);
    const transport::Encoding encoding = stream.head.encoding();
    if (flag > 1 || (flag == 1 && encoding == transport::Encoding::kIdentity)) {
      code = absl::StatusCode::kInternal;
    } else if (size > max_message_bytes_) {
      code = absl::StatusCode::kResourceExhausted;
    }
    if (code != absl::StatusCode::kOk || stream.left.size() - kPrefixBytes < size) return false;
    std::string message = stream.left.substr(kPrefixBytes, size);
    stream.left.erase(0, kPrefixBytes + size);
    if (flag == 1) {
      const std::optional<std::string> inflated = Inflate(encoding, message, max_message_bytes_);
      if (!inflated.has_value()) {
        code = absl::StatusCode::kInvalidArgument;
        return false;
      }
      message = *inflated;
    }
    stream.messages.push_back(std::move(message));
    return true;
  }

  void OnEnd(int32_t id, ReferenceStream& stream) {
    if (stream.state == State::kAnswered) stream.state = State::kOver;
    if (stream.state != State::kOpen) return;
    stream.state = State::kEnded;
    stream.end = stream.left.empty() ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument;
    std::array<uint8_t, 7> name = {':', 's', 't', 'a', 't', 'u', 's'};
    std::array<uint8_t, 3> value = {'2', '0', '0'};
    const nghttp2_nv field = {name.data(), value.data(), name.size(), value.size(),
                              NGHTTP2_NV_FLAG_NONE};
    nghttp2_submit_response(session_, id, &field, 1, nullptr);
  }

  void OnSent(const nghttp2_frame& frame) {
    if (frame.hd.type == NGHTTP2_GOAWAY) result_.error = frame.goaway.error_code;
    if (frame.hd.type != NGHTTP2_RST_STREAM || frame.rst_stream.error_code == NGHTTP2_NO_ERROR) {
      return;
    }
    result_.resets.insert({frame.hd.stream_id, frame.rst_stream.error_code});
    if (ReferenceStream* const stream = Find(frame.hd.stream_id)) stream->state = State::kReset;
  }

  const size_t max_message_bytes_;
  nghttp2_session* session_ = nullptr;
  Reference result_;
  size_t taken_ = 0;
  bool stopped_ = false;
  int32_t last_ = 0;  // the highest stream
  // The header block that is arriving.
  size_t block_began_at_ = 0;
  size_t block_decoded_ = 0;
  int32_t block_stream_ = 0;
  std::optional<ReferenceStream> before_;  // its stream
  std::set<std::pair<int32_t, uint32_t>> resets_before_;
  bool block_is_new_ = false;
  bool block_stops_ = false;
};

}  // namespace

Reference AskNghttp2(absl::string_view bytes, uint32_t max_streams, uint32_t window,
                     size_t max_message_bytes) {
  return Session(max_streams, window, max_message_bytes).Ask(bytes);
}

}  // namespace quantd::fuzz
