// What nghttp2's own server session makes of a conversation: its streams, and what they received.
// It gets the bytes frame by frame, each in one piece, and answers as the transport would.
//
// It stops where the transport may behave differently, because that is stricter than nghttp2, or
// because its behaviour depends on timing from there on.
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
    kEnded,     // by the peer, who sends no more
    kAnswered,  // refused or given up: further DATA is dropped
    kOver,      // both
    kReset,     // by the peer or by nghttp2: earlier data may be dropped
  };
  State state = State::kOpen;
  // What depends on timing, and on how the bytes are cut into pieces: a reset by the peer that may
  // come before another one, and a content-length, which ends a stream in the middle of a frame.
  bool peer_reset = false;
  bool has_length = false;
  transport::Head head;
  bool is_call = false;  // of the existing method
  std::vector<std::string> messages;
  absl::StatusCode end = absl::StatusCode::kCancelled;  // of a call
  std::string left;                                     // of an incomplete message
};

struct Reference {
  size_t compared = 0;  // the number of bytes that the rest is about
  std::map<int32_t, ReferenceStream> streams;
  std::set<std::pair<int32_t, uint32_t>> resets;  // sent by nghttp2: stream and reason
  uint32_t error = 0;                             // with which it has ended the connection
  bool fatal = false;                             // without a GOAWAY
};

Reference AskNghttp2(absl::string_view bytes, uint32_t max_streams, uint32_t window,
                     size_t max_message_bytes);

}  // namespace quantd::fuzz

#endif  // QUANTD_TESTS_FUZZ_HTTP2_REFERENCE_H_
