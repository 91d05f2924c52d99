// Follows the frame heads of HTTP/2 in what a peer sends, because nghttp2 does not report all of
// them: CONTINUATION frames, and header blocks that it skips or that never end. It looks at nine
// bytes of each frame and at no payload.
#ifndef QUANTD_SERVER_TRANSPORT_FRAME_WALK_H_
#define QUANTD_SERVER_TRANSPORT_FRAME_WALK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "server/transport/closed_streams.h"

namespace quantd::transport {

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
  // The peer's streams, as seen in the heads of its frames.
  ClosedStreams& closed_streams() { return closed_streams_; }
  // The numbers of header blocks and CONTINUATION frames so far.
  uint64_t blocks() const { return blocks_; }
  uint64_t continuations() const { return continuations_; }

 private:
  static constexpr size_t kPreface = 24;
  static constexpr size_t kHeadBytes = 9;
  static constexpr uint8_t kHeaders = 1;
  static constexpr uint8_t kContinuation = 9;
  static constexpr uint8_t kEndHeaders = 4;

  void Begin() {
    have_ = 0;
    left_ = static_cast<size_t>(head_[0]) << 16 | head_[1] << 8 | head_[2];
    const uint8_t type = head_[3];
    const uint32_t id = uint32_t{head_[5]} << 24 | head_[6] << 16 | head_[7] << 8 | head_[8];
    closed_streams_.OnHead(type, head_[4], static_cast<int32_t>(id & 0x7FFFFFFF));
    if (type == kHeaders) {
      in_block_ = true;
      block_bytes_ = 0;
      ++blocks_;
    } else if (type == kContinuation) {
      ++continuations_;
    } else {
      in_block_ = false;
    }
    block_ends_ = in_block_ && (head_[4] & kEndHeaders) != 0;
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
