// Remembers which streams a peer has ended or reset. HTTP/2 (RFC 9113, 5.1 and 5.1.1) makes a
// frame on a stream after its end an error of the connection, and a frame after its reset an
// error of that stream only: a client with many calls may write DATA that waited for its
// window after the reset of a call that it cancelled, and its other calls continue. nghttp2
// could keep closed streams for this, at 200 bytes each. This class keeps only the few numbers
// that tell such errors from frames that were under way when we closed a stream, which are
// allowed.
#ifndef QUANTD_SERVER_TRANSPORT_CLOSED_STREAMS_H_
#define QUANTD_SERVER_TRANSPORT_CLOSED_STREAMS_H_

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace quantd::transport {

// For one connection.
class ClosedStreams {
 public:
  // Called at the head of each frame. Keeps the first error().
  void OnHead(uint8_t type, uint8_t flags, int32_t id) {
    const bool carries = type == NGHTTP2_DATA || type == NGHTTP2_HEADERS;
    if (id == 0 || (!carries && type != NGHTTP2_RST_STREAM)) return;
    if (carries && Has(reset_, id)) {
      late_ = id;
    } else if (carries && error_ == NGHTTP2_NO_ERROR) {
      error_ = Check(type, id);
    }
    if (type == NGHTTP2_HEADERS && id > last_) {
      if (id > last_ + 2) left_out_ = {last_ + 1, id - 1};
      last_ = id;
    }
    if (!carries) {
      reset_.Add(id);
    } else if ((flags & NGHTTP2_FLAG_END_STREAM) != 0) {
      ended_.Add(id);
    }
  }

  // NGHTTP2_NO_ERROR, or the error that the connection ends with: STREAM_CLOSED for a frame on a
  // stream that the peer had ended, PROTOCOL_ERROR for one on a stream number that it had skipped.
  uint32_t error() const { return error_; }

  // The last stream with a frame after its reset since the previous call; 0: none.
  int32_t TakeLate() { return std::exchange(late_, 0); }

 private:
  struct Last {
    void Add(int32_t id) { ids[next++ % ids.size()] = id; }
    std::array<int32_t, 8> ids = {};
    size_t next = 0;
  };

  static bool Has(const Last& last, int32_t id) {
    return std::find(last.ids.begin(), last.ids.end(), id) != last.ids.end();
  }

  uint32_t Check(uint8_t type, int32_t id) const {
    if (type == NGHTTP2_HEADERS && id >= left_out_[0] && id <= left_out_[1]) {
      return NGHTTP2_PROTOCOL_ERROR;
    }
    return Has(ended_, id) ? NGHTTP2_STREAM_CLOSED : NGHTTP2_NO_ERROR;
  }

  Last ended_;
  Last reset_;
  int32_t late_ = 0;
  int32_t last_ = 0;                          // the highest stream number with headers
  std::array<int32_t, 2> left_out_ = {1, 0};  // the last gap below it: from, to
  uint32_t error_ = NGHTTP2_NO_ERROR;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_CLOSED_STREAMS_H_
