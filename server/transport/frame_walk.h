// Follows the frame heads of HTTP/2 in what a peer sends, because nghttp2 does not report all of
// them: CONTINUATION frames, and header blocks that it skips or that never end. It looks at nine
// bytes of each frame and at no payload.
#ifndef QUANTD_SERVER_TRANSPORT_FRAME_WALK_H_
#define QUANTD_SERVER_TRANSPORT_FRAME_WALK_H_

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace quantd::transport {

// Remembers which streams a peer has ended or reset. HTTP/2 (RFC 9113, 5.1 and 5.1.1) makes a
// frame on a stream after its end an error of the connection, and a frame after its reset an
// error of that stream only: a client with many calls may write DATA that waited for its
// window after the reset of a call that it cancelled, and its other calls continue. nghttp2
// could keep closed streams for this, at 200 bytes each. This class keeps only the few numbers
// that tell such errors from frames that were under way when we closed a stream, which are
// allowed.
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

class FrameWalk {
 public:
  // Takes the next bytes of the connection. The first bytes are the preface.
  void Walk(const uint8_t* data, size_t size) {
    while (size != 0) {
      const size_t passed = std::min(size, left_);
      left_ -= passed;
      if (in_block_) block_bytes_ += passed;
      data += passed;
      size -= passed;
      if (left_ == 0 && block_ends_) in_block_ = block_ends_ = false;
      for (; left_ == 0 && size != 0; --size) {
        head_[have_++] = *data++;
        if (have_ == kHeadBytes) Begin();
      }
    }
  }

  // Whether a header block has begun and is not complete, and how many bytes of it have arrived.
  bool in_block() const { return in_block_; }
  size_t block_bytes() const { return block_bytes_; }
  // See ClosedStreams.
  uint32_t error() const { return closed_streams_.error(); }
  int32_t TakeLate() { return closed_streams_.TakeLate(); }
  // The numbers of header blocks and CONTINUATION frames so far.
  uint64_t blocks() const { return blocks_; }
  uint64_t continuations() const { return continuations_; }

 private:
  static constexpr size_t kPreface = 24;
  static constexpr size_t kHeadBytes = 9;

  void Begin() {
    have_ = 0;
    left_ = static_cast<size_t>(head_[0]) << 16 | head_[1] << 8 | head_[2];
    const uint8_t type = head_[3];
    const uint32_t id = uint32_t{head_[5]} << 24 | head_[6] << 16 | head_[7] << 8 | head_[8];
    closed_streams_.OnHead(type, head_[4], static_cast<int32_t>(id & 0x7FFFFFFF));
    if (type == NGHTTP2_HEADERS) {
      in_block_ = true;
      block_bytes_ = 0;
      ++blocks_;
    } else if (type == NGHTTP2_CONTINUATION) {
      ++continuations_;
    } else {
      in_block_ = false;
    }
    block_ends_ = in_block_ && (head_[4] & NGHTTP2_FLAG_END_HEADERS) != 0;
    if (left_ == 0 && block_ends_) in_block_ = block_ends_ = false;
  }

  size_t left_ = kPreface;  // bytes of the current frame that have not arrived
  uint8_t head_[kHeadBytes] = {};
  uint8_t have_ = 0;  // received bytes of the next frame's head
  bool in_block_ = false;
  bool block_ends_ = false;  // the current frame is the last of the block
  size_t block_bytes_ = 0;
  ClosedStreams closed_streams_;
  uint64_t blocks_ = 0;
  uint64_t continuations_ = 0;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_FRAME_WALK_H_
