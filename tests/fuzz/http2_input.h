// What the fuzzers of HTTP/2 send, as frames: made, taken apart, changed so that they stay
// frames, and cut into pieces.
//
// An input is a sequence of pieces, as they come from a socket: a byte that says how long a piece
// is, in steps of 7, and the piece. What the pieces hold together is a connection's preface and
// its frames.
#ifndef QUANTD_TESTS_FUZZ_HTTP2_INPUT_H_
#define QUANTD_TESTS_FUZZ_HTTP2_INPUT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "fuzzing.h"

namespace quantd::fuzz {

// The method that there is.
inline constexpr absl::string_view kPath = "/f/Echo";
// And one that waits for news (transport::Service::Watches), which http2_fuzzer has.
inline constexpr absl::string_view kWatchPath = "/f/Watch";

// A setting that HTTP/2 does not know, in the first SETTINGS frame: what goes on around the input
// (http2_fuzzer; the values are joined by or). No server heeds it.
inline constexpr uint16_t kAround = 0xFACE;
enum Around : uint8_t {
  kLittleMemory = 1,  // a message of a KiB is large, and two of 8 KiB have no place
  kFewCalls = 2,      // more than three are one peer's share
  kDeaf = 4,          // the peer reads nothing while it sends, and little is kept for it
  kTimePasses = 8,    // timers fire as if a quarter of a second passed each turn; patience is none
  kDraining = 16,     // the server takes no new connections
  kServerEnds = 32,   // when all is said, the server ends its calls, and with kDraining closes
};
inline constexpr uint8_t kAllAround = 63;
// What the input says of it; 0: nothing.
uint8_t AroundOf(absl::string_view input);

struct Frame {
  uint8_t type = 0;
  uint8_t flags = 0;
  uint32_t stream = 0;
  std::string payload;
};

// What a peer says.
struct Conversation {
  std::string preface;
  std::vector<Frame> frames;
  std::string rest;  // of a frame that is not whole
};

Conversation ParseConversation(absl::string_view bytes);
// The whole frames at the begin of `bytes`, which are taken off.
std::vector<Frame> ParseFrames(absl::string_view& bytes);
std::string ToBytes(const Frame& frame);
std::string ToBytes(const Conversation& conversation);

// One that makes sense, mostly.
Conversation RandomConversation(Random& random);
// Frames that are added, left out, moved, split, joined, or have other flags, streams and
// payloads; all of them stay frames. `change_bytes`: changes a payload in any way.
void Change(Conversation& conversation, Random& random,
            const std::function<void(std::string&)>& change_bytes);
// The begin of one and the end of the other.
Conversation Cross(const Conversation& first, const Conversation& second, Random& random);

// Bytes as an input, cut anywhere, and back.
std::string Cut(absl::string_view bytes, Random& random);
std::string Join(absl::string_view input);

// A piece of this length and the one behind it come together.
inline constexpr size_t kLongestPiece = 1 + 7 * 255;
// Takes the next piece off an input.
absl::string_view NextPiece(absl::string_view& input);

}  // namespace quantd::fuzz

#endif  // QUANTD_TESTS_FUZZ_HTTP2_INPUT_H_
