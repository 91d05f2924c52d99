// The codec of a connection: HTTP/2's frames, in and out, by nghttp2. It has no socket and no
// clock: received bytes are fed to it, and it has pieces of bytes to write.
//
//   Http2 http2(owner, credit);
//   http2.Begin(100, 65'536);
//   http2.Feed(data, size);              // calls the owner and the streams
//   http2.Fill();                        // makes frames of what the streams have to send
//   size_t count = http2.Pieces(pieces); // writev ...
//   http2.Wrote(bytes);
//
// A call consists of request headers, messages in DATA frames, and the end of the stream. It is
// answered by headers, messages and trailers with the status, or by trailers only. nghttp2 itself
// limits acknowledgements that wait to be sent, CONTINUATION frames, settings in a frame, frame
// sizes and flow control. Its limit of resets is off, because it ends connections whose clients
// cancel often: they, and all other useless frames, cost credit (frame_credit.h).
//
// Functions may throw std::bad_alloc, which ends the connection.
#ifndef QUANTD_SERVER_TRANSPORT_HTTP2_H_
#define QUANTD_SERVER_TRANSPORT_HTTP2_H_

#include <nghttp2/nghttp2.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/transport/encoding.h"
#include "server/transport/frame_credit.h"
#include "server/transport/frame_walk.h"
#include "server/transport/head.h"
#include "server/wire/call_status.h"

namespace quantd::transport {

// What the codec tells a stream, and asks it for: a call.
class Stream {
 public:
  // A DATA frame of so many bytes begins.
  virtual void OnFrame(size_t bytes) = 0;
  virtual void OnData(const uint8_t* data, size_t size) = 0;
  // Where the next bytes of the message go, if its memory is reserved; otherwise empty.
  virtual absl::Span<uint8_t> Place() const = 0;
  // A padded frame has ended. `window`: how much the peer may still send.
  virtual void OnPadding(int64_t window) = 0;
  // The peer has ended its half.
  virtual void OnRemoteEnd() = 0;
  // The stream is closed. Bytes that were pulled may still have to be written.
  virtual void OnClosed() = 0;

  struct Offer {
    size_t size = 0;
    bool made = false;  // bytes were computed for it
    bool ends = false;  // it is the last one, and the stream has submitted its trailers
  };
  // The size of the next frame, at most `most`. Neither size nor ends: there is none now.
  virtual Offer NextFrame(size_t most) = 0;
  // The bytes of the frame that was offered, which stay until they are sent.
  virtual const uint8_t* Pull(size_t size) = 0;
  // So many of the bytes that were pulled are with the kernel.
  virtual void Sent(size_t size) = 0;
  // The frame that ends the stream is made.
  virtual void OnEndSent() = 0;

 protected:
  ~Stream() = default;
};

class Http2 {
 public:
  class Owner {
   public:
    // The headers of a request are complete. It is attached, or refused.
    virtual void OnRequest(int32_t id, Head&& head) = 0;
    // Whether Head::metadata needs this header.
    virtual bool Keeps(absl::string_view name) const = 0;
    // The number of calls, also of those that the peer has reset, but whose frames wait.
    virtual size_t calls() const = 0;
    // The peer's SETTINGS have arrived, or its answer to a ping.
    virtual void OnSettings() = 0;
    virtual void OnPong() = 0;
    // The connection ends with an error, which will be sent: the peer has broken a rule of HTTP/2
    // or, if `by_headers`, has sent far too many of them.
    virtual void OnBroken(bool by_headers) = 0;
    // There is something to write.
    virtual void OnOutput() = 0;

   protected:
    ~Owner() = default;
  };

  // The most bytes of a header block, on the wire and decoded. Blocks over Head::kMaxBytes and
  // below this are answered.
  static constexpr size_t kMostBlockBytes = 2 * Head::kMaxBytes;
  // The bytes of a frame's head.
  static constexpr size_t kFrameHead = 9;
  // The bytes of frames that are made before they are written.
  static constexpr size_t kPullBytes = 512 << 10;
  // The most parts of responses that are computed for them before the next BeginWriting.
  static constexpr int kMostMade = 8;

  Http2(Owner& owner, FrameCredit& credit) : owner_(owner), credit_(credit) {}
  ~Http2() { nghttp2_session_del(session_); }
  Http2(const Http2&) = delete;
  Http2& operator=(const Http2&) = delete;

  // Sends the settings: `window` is that of each stream. False: the system is out of memory.
  bool Begin(uint32_t max_streams, uint32_t window);

  // ---- Input

  enum class Fed : uint8_t {
    kOk,
    kBroken,    // the connection must end
    kNotHttp2,  // the peer speaks another protocol
  };
  Fed Feed(const uint8_t* data, size_t size);
  // Whether further input has any effect.
  bool wants_input() const { return nghttp2_session_want_read(session_) != 0; }
  // The DATA frame that is being received: its stream, unless that is closed, and how many bytes
  // are to come. 0 if it is padded: the end of the data is not known in advance.
  Stream* frame_stream() const { return frame_stream_; }
  size_t frame_left() const { return frame_left_; }
  // The header block that is being received: see FrameWalk.
  const FrameWalk& walk() const { return walk_; }

  // ---- Streams

  // `stream` gets what comes for `id`, until it is closed or detached.
  void Attach(int32_t id, Stream& stream) {
    nghttp2_session_set_stream_user_data(session_, id, &stream);
  }
  void Detach(int32_t id);
  // Lets the peer send so many bytes more.
  void Grant(int32_t id, int64_t bytes);
  // How many bytes the peer's windows let through.
  int64_t Room(int32_t id) const;
  // The response's headers. Its frames are asked for (NextFrame).
  void SendHeaders(int32_t id, Stream& stream, const Metadata& metadata, Encoding encoding);
  // The stream has a frame again.
  void Resume(int32_t id);
  // Trailers behind the frames.
  void SendTrailers(int32_t id, const wire::CallStatus& status);
  // The whole response.
  void SendTrailersOnly(int32_t id, const wire::CallStatus& status);
  // A response that is no gRPC, with a text unless the request was HTTP's HEAD.
  void RefuseHttp(int32_t id, int http_status, bool is_head);
  void Reset(int32_t id, uint32_t code);

  // Responses of RefuseHttp whose text may wait for the peer's window.
  size_t refusals() const { return refusals_.size(); }
  void ResetRefusals();

  // ---- Connection

  void Ping();
  // Says that the connection will end. The last stream is not known yet.
  void Announce();
  // Says what the last stream was; the connection is over once all are closed.
  void GoAway();
  // Whether nothing is left to receive or to send.
  bool over() const { return !wants_input() && nghttp2_session_want_write(session_) == 0; }

  // ---- Output

  // More parts may be computed.
  void BeginWriting() { made_ = 0; }
  bool made_enough() const { return made_ >= kMostMade; }
  // Makes frames, unless there are enough of them. False: the connection must end.
  bool Fill();
  // The first pieces of what is made. Returns their number.
  size_t Pieces(absl::Span<iovec> pieces);
  bool empty() const { return segments_.empty(); }
  void Wrote(size_t bytes);
  // Forgets what is made: the connection is closed.
  void Drop() { segments_.clear(); }
  // Bytes that wait for the peer without those of messages, and those of frames that are not made.
  size_t unsent() const;

 private:
  // Bytes to send next: of control_, or of a stream's message.
  struct Segment {
    Stream* stream;       // null: from control_
    const uint8_t* data;  // null: from control_
    size_t size;
  };

  static nghttp2_session_callbacks* MakeCallbacks();
  static nghttp2_option* MakeOptions();
  static ssize_t WantData(nghttp2_session* session, int32_t id, uint8_t* to, size_t length,
                          uint32_t* flags, nghttp2_data_source* source, void* user_data);
  int OnBeginHeaders(const nghttp2_frame& frame);
  int OnHeader(const nghttp2_frame& frame, absl::string_view name, absl::string_view value);
  int OnBeginFrame(const nghttp2_frame_hd& head);
  int OnFrame(const nghttp2_frame& frame);
  int OnData(int32_t id, const uint8_t* data, size_t size);
  int OnSendData(Stream& stream, const uint8_t* frame_head, size_t length);
  int OnFrameSent(const nghttp2_frame& frame);
  int OnStreamClosed(int32_t id);
  Stream* Find(int32_t id) const {
    return static_cast<Stream*>(nghttp2_session_get_stream_user_data(session_, id));
  }
  void EndForHeaders();
  bool full() const { return queued_ >= kPullBytes || made_enough(); }
  void AddControl(const uint8_t* data, size_t size);

  Owner& owner_;
  FrameCredit& credit_;
  nghttp2_session* session_ = nullptr;

  FrameWalk walk_;
  Head head_;                 // of the request whose headers are being received
  size_t block_decoded_ = 0;  // bytes of the block's fields, as counted by RFC 9113
  bool ended_for_headers_ = false;
  Stream* frame_stream_ = nullptr;
  size_t frame_left_ = 0;
  absl::flat_hash_set<int32_t> refusals_;

  std::string control_;  // frame heads and whole small frames
  size_t control_sent_ = 0;
  std::deque<Segment> segments_;
  size_t queued_ = 0;     // bytes in the segments
  size_t submitted_ = 0;  // bytes of header fields in nghttp2's queue, at most
  int made_ = 0;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_HTTP2_H_
