// What the fuzzer of HTTP/2 sends, as frames: made, parsed, changed so that they stay frames, and
// cut into pieces.
//
// An input is a sequence of pieces, as they are read from a socket: a byte with the length of the
// piece, in steps of 7, and the piece. Together, the pieces contain a connection's preface and its
// frames.
#ifndef QUANTD_TESTS_FUZZ_HTTP2_INPUT_H_
#define QUANTD_TESTS_FUZZ_HTTP2_INPUT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "fuzzing.h"

namespace quantd::fuzz {

// The existing method.
inline constexpr absl::string_view kPath = "/f/Echo";
// A method that waits for news (transport::Service::Watches), which http2_fuzzer has as well.
inline constexpr absl::string_view kWatchPath = "/f/Watch";

// A setting that HTTP/2 does not know, in the first SETTINGS frame: the surroundings of the input
// (for http2_fuzzer; the values are combined with or). Servers ignore it.
inline constexpr uint16_t kAround = 0xFACE;
enum Around : uint8_t {
  kLittleMemory = 1,  // a message of a KiB is large, and two of 8 KiB do not fit
  kFewCalls = 2,      // one peer may have three of them
  kDeaf = 4,          // the peer reads nothing while it sends, and little is kept for it
  kTimePasses = 8,    // timers fire as if each turn took a quarter of a second; no patience
  kDraining = 16,     // the server takes no new connections
  kServerEnds = 32,   // after the input the server ends its calls; with kDraining it closes
};
inline constexpr uint8_t kAllAround = 63;
// The setting in the input; 0: none.
uint8_t AroundOf(absl::string_view input);

struct Frame {
  uint8_t type = 0;
  uint8_t flags = 0;
  uint32_t stream = 0;
  std::string payload;
};

// Everything that a peer sends.
struct Conversation {
  std::string preface;
  std::vector<Frame> frames;
  std::string rest;  // of an incomplete frame
};

Conversation ParseConversation(absl::string_view bytes);
// The complete frames at the start of `bytes`; removes them from it.
std::vector<Frame> ParseFrames(absl::string_view& bytes);
std::string ToBytes(const Frame& frame);
std::string ToBytes(const Conversation& conversation);

// A conversation that mostly makes sense.
Conversation RandomConversation(Random& random);
// Adds, removes, moves, splits or joins frames, or changes their flags, streams and payloads; all
// of them stay frames. `change_bytes`: changes a payload in any way.
void Change(Conversation& conversation, Random& random,
            const std::function<void(std::string&)>& change_bytes);
// The start of the first and the end of the second.
Conversation Cross(const Conversation& first, const Conversation& second, Random& random);

// Makes an input of bytes, cut anywhere; and back.
std::string Cut(absl::string_view bytes, Random& random);
std::string Join(absl::string_view input);

// A piece of this length is sent together with the next one.
inline constexpr size_t kLongestPiece = 1 + 7 * 255;
// Removes the next piece from an input.
absl::string_view NextPiece(absl::string_view& input);

}  // namespace quantd::fuzz

#endif  // QUANTD_TESTS_FUZZ_HTTP2_INPUT_H_
