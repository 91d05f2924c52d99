// What nghttp2's own server session makes of a conversation: the streams that it has, and what
// has reached them. It is given the bytes frame by frame, in one piece each, and answers as the
// transport would.
//
// It stops where the transport may go another way, because it holds a peer to more than nghttp2
// does, or because what it does then is a matter of time.
#ifndef QUANTD_TESTS_FUZZ_HTTP2_REFERENCE_H_
#define QUANTD_TESTS_FUZZ_HTTP2_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/transport/head.h"

namespace quantd::fuzz {

struct ReferenceStream {
  enum class State {
    kOpen,
    kEnded,     // by the peer, who says no more
    kAnswered,  // refused, or given up: DATA that comes is dropped
    kOver,      // both
    kReset,     // by the peer or by nghttp2: what had come may be dropped
  };
  State state = State::kOpen;
  // What is a matter of time, and of how its bytes come in pieces: a reset by the peer that may
  // come before another one, and a content-length, which ends a stream in the middle of a frame.
  bool peer_reset = false;
  bool has_length = false;
  transport::Head head;
  bool is_call = false;  // of the method that there is
  std::vector<std::string> messages;
  absl::StatusCode end = absl::StatusCode::kCancelled;  // of a call
  std::string left;                                     // of a message that is not whole
};

struct Reference {
  size_t compared = 0;  // bytes from the begin on, of which all the rest is true
  std::map<int32_t, ReferenceStream> streams;
  std::set<std::pair<int32_t, uint32_t>> resets;  // that nghttp2 sent: stream and reason
  uint32_t error = 0;                             // what it has ended the connection with
  bool fatal = false;                             // without another word
};

Reference AskNghttp2(absl::string_view bytes, uint32_t max_streams, uint32_t window,
                     size_t max_message_bytes);

}  // namespace quantd::fuzz

#endif  // QUANTD_TESTS_FUZZ_HTTP2_REFERENCE_H_
