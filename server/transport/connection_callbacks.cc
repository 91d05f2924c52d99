// nghttp2's callbacks, which report input to a connection and ask it for output. See connection.h.
#include <algorithm>
#include <array>
#include <new>

#include "absl/strings/string_view.h"
#include "server/transport/connection.h"

namespace quantd::transport {
namespace {

constexpr uint32_t kMaxFrameBytes = 128 << 10;
constexpr int32_t kConnectionWindow = 1 << 30;

}  // namespace

// nghttp2's callbacks, as members. An exception must not cross its C code.
struct Callbacks {
  static Connection& Of(void* user_data) { return *static_cast<Connection*>(user_data); }

  template <typename Function>
  static int CatchOutOfMemory(Function function) {
    try {
      return function();
    } catch (const std::bad_alloc&) {
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
  }

  static int BeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    return CatchOutOfMemory([&] { return Of(user_data).OnBeginHeaders(*frame); });
  }
  static int Header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                    size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                    void* user_data) {
    return CatchOutOfMemory([&] {
      return Of(user_data).OnHeader(*frame, {reinterpret_cast<const char*>(name), name_size},
                                    {reinterpret_cast<const char*>(value), value_size});
    });
  }
  static int BeginFrame(nghttp2_session*, const nghttp2_frame_hd* head, void* user_data) {
    return CatchOutOfMemory([&] { return Of(user_data).OnBeginFrame(*head); });
  }
  static int Frame(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    return CatchOutOfMemory([&] { return Of(user_data).OnFrame(*frame); });
  }
  static int Data(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size,
                  void* user_data) {
    return CatchOutOfMemory([&] { return Of(user_data).OnData(id, data, size); });
  }
  static int FrameSent(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    return CatchOutOfMemory([&] { return Of(user_data).OnFrameSent(*frame); });
  }
  static int StreamClosed(nghttp2_session*, int32_t id, uint32_t, void* user_data) {
    return CatchOutOfMemory([&] {
      Of(user_data).OnStreamClosed(id);
      return 0;
    });
  }
  static ssize_t FrameSize(nghttp2_session*, uint8_t, int32_t, int32_t, int32_t,
                           uint32_t remote_max_frame_size, void*) {
    return std::min<uint32_t>(remote_max_frame_size, 64 << 10);
  }
  static int SendData(nghttp2_session*, nghttp2_frame*, const uint8_t* head, size_t length,
                      nghttp2_data_source* source, void* user_data) {
    return CatchOutOfMemory([&] {
      return Of(user_data).OnSendData(*static_cast<ServerCall*>(source->ptr), head, length);
    });
  }

  static nghttp2_session_callbacks* Make() {
    nghttp2_session_callbacks* all = nullptr;
    if (nghttp2_session_callbacks_new(&all) != 0) return nullptr;
    nghttp2_session_callbacks_set_on_begin_headers_callback(all, BeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback(all, Header);
    nghttp2_session_callbacks_set_on_begin_frame_callback(all, BeginFrame);
    nghttp2_session_callbacks_set_on_frame_recv_callback(all, Frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(all, Data);
    nghttp2_session_callbacks_set_on_frame_send_callback(all, FrameSent);
    nghttp2_session_callbacks_set_on_stream_close_callback(all, StreamClosed);
    nghttp2_session_callbacks_set_data_source_read_length_callback(all, FrameSize);
    nghttp2_session_callbacks_set_send_data_callback(all, SendData);
    return all;
  }

  static nghttp2_option* MakeOptions() {
    nghttp2_option* options = nullptr;
    if (nghttp2_option_new(&options) != 0) return nullptr;
    // ServerCall grants windows, as memory allows.
    nghttp2_option_set_no_auto_window_update(options, 1);
    nghttp2_option_set_no_closed_streams(options, 1);
    // White space around a value is stripped (Head::Add) instead of refused.
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(options, 1);
    // A client may cancel any number of calls: see FrameCredit.
    constexpr uint64_t kPlenty = uint64_t{1} << 40;
    nghttp2_option_set_stream_reset_rate_limit(options, kPlenty, kPlenty);
    return options;
  }
};

bool Connection::Begin() {
  static nghttp2_session_callbacks* const callbacks = Callbacks::Make();
  static nghttp2_option* const options = Callbacks::MakeOptions();
  if (callbacks == nullptr || options == nullptr ||
      nghttp2_session_server_new2(&session_, callbacks, this, options) != 0) {
    return false;
  }
  const std::array<nghttp2_settings_entry, 4> settings = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, context_.limits.max_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<uint32_t>(context_.receiving.window())},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, kMaxFrameBytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, Head::kMaxBytes},
  }};
  return nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) ==
             0 &&
         nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow) ==
             0;
}

}  // namespace quantd::transport
