#include "http2_input.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frames.h"
#include "http2_blocks.h"

namespace quantd::fuzz {
namespace {

using transport::BigEndian;
using transport::kPadded;
using transport::kPreface;

constexpr size_t kPrefaceBytes = 24;
constexpr size_t kHeadBytes = 9;
constexpr uint32_t kStreamBits = 0x7FFFFFFF;
// A conversation does not grow longer, so that one run stays short.
constexpr size_t kMostFrames = 200;
// Enough for a flood: frames that cost much, or responses that nobody reads.
constexpr int kFlood = 130;
constexpr int kMostSettings = 32;  // per frame
// When inflated, more than any of the fuzzers accepts in a message.
constexpr size_t kBomb = (1 << 20) + 1;
// From this size on, a message is read in place, in frames of some KiB.
constexpr size_t kLargeMessage = 16 << 10;

Frame Make(uint8_t type, uint8_t flags, uint64_t stream, std::string payload) {
  return {type, flags, static_cast<uint32_t>(stream) & kStreamBits, std::move(payload)};
}

// ---- Frames

// A stream that a frame may be on, mostly an existing one.
uint64_t AnyStream(Random& random, uint64_t next_stream) {
  if (next_stream == 1 || OneIn(random, 10)) return Below(random, 9);
  return OneIn(random, 3) ? 1 + 2 * Below(random, next_stream / 2) : next_stream - 2;
}

void Pad(Frame& frame, Random& random) {
  if ((frame.flags & kPadded) != 0) return;
  const std::string padding(Below(random, 256), '\0');
  frame.payload = static_cast<char>(padding.size()) + frame.payload + padding;
  frame.flags |= kPadded;
}

std::string Message(Random& random, bool gzip) {
  const size_t size = Below(random, OneIn(random, 8) ? 40'000 : 50);
  // Bytes that show their position, so that misplaced ones are noticed.
  const std::string bytes = transport::Pattern(random(), size);
  if (!gzip) return transport::Prefixed(bytes);
  std::string compressed = Gzip(OneIn(random, 40) ? std::string(kBomb, 'b') : bytes);
  if (OneIn(random, 20)) compressed += "more";
  std::string message = transport::Prefixed(compressed);
  message[0] = 1;
  return message;
}

// In frames of one size, as clients send large messages, or cut anywhere; sometimes with another
// frame in between.
void AddData(uint64_t id, absl::string_view data, bool ends, Random& random,
             std::vector<Frame>& frames) {
  size_t step = OneIn(random, 2) ? data.size() : 1 + Below(random, 50);
  if (data.size() > kLargeMessage && !OneIn(random, 4)) step = 4'096 + Below(random, 5'000);
  const bool many = data.size() / step < 20;
  do {
    const absl::string_view part = data.substr(0, many ? step : data.size());
    data.remove_prefix(part.size());
    const uint8_t flags = data.empty() && ends ? transport::kEndStream : 0;
    frames.push_back(Make(transport::kDataFrame, flags, id, std::string(part)));
    if (OneIn(random, 8)) Pad(frames.back(), random);
    if (OneIn(random, 8)) frames.push_back(Make(transport::kPingFrame, 0, 0, "12345678"));
  } while (!data.empty());
}

// A call, mostly a complete one.
void AddCall(uint64_t id, Random& random, std::vector<Frame>& frames) {
  const bool gzip = OneIn(random, 6);
  const std::string block = RequestBlock(random, gzip);
  if (OneIn(random, 10)) {
    const size_t cut = Below(random, block.size());
    frames.push_back(Make(transport::kHeadersFrame, 0, id, block.substr(0, cut)));
    frames.push_back(
        Make(transport::kContinuationFrame, transport::kEndHeaders, id, block.substr(cut)));
  } else {
    frames.push_back(Make(transport::kHeadersFrame, transport::kEndHeaders, id, block));
  }
  if (OneIn(random, 8)) Pad(frames.back(), random);
  std::string data = Message(random, gzip);
  while (OneIn(random, 3)) data += Message(random, gzip && !OneIn(random, 8));
  AddData(id, data, !OneIn(random, 4), random, frames);
}

// Frames of one kind, as many as make the transport react.
void AddFlood(Random& random, uint64_t& next_stream, std::vector<Frame>& frames) {
  const uint64_t kind = Below(random, 4);
  std::string settings;
  for (int i = 0; i < kMostSettings; ++i) settings += BigEndian(4, 2) + BigEndian(1'000, 4);
  for (int i = 0; i < kFlood; ++i) {
    if (kind == 0) {
      frames.push_back(Make(transport::kSettingsFrame, 0, 0, settings));
    } else if (kind == 1) {
      frames.push_back(Make(transport::kPingFrame, 0, 0, "12345678"));
    } else {
      frames.push_back(Make(transport::kHeadersFrame,
                            transport::kEndHeaders | transport::kEndStream, next_stream,
                            RefusedBlock(random)));
      next_stream += 2;
    }
  }
}

void AddFrames(Random& random, uint64_t& next_stream, std::vector<Frame>& frames) {
  const uint64_t stream = AnyStream(random, next_stream);
  const std::string any(Below(random, 40), static_cast<char>(random()));
  const uint64_t number = random() >> Below(random, 64);
  switch (OneIn(random, 200) ? 16 : Below(random, 16)) {
    case 16:
      AddFlood(random, next_stream, frames);
      break;
    case 0:
      frames.push_back(Make(static_cast<uint8_t>(Below(random, 17)), static_cast<uint8_t>(random()),
                            stream, any));
      break;
    case 1:
      frames.push_back(Make(transport::kPingFrame, OneIn(random, 2), 0, "12345678"));
      break;
    case 2:
      frames.push_back(Make(transport::kRstFrame, 0, stream, BigEndian(Below(random, 16), 4)));
      break;
    case 3:
      frames.push_back(
          Make(transport::kWindowFrame, 0, OneIn(random, 2) ? 0 : stream, BigEndian(number, 4)));
      break;
    case 4:
      frames.push_back(Make(transport::kSettingsFrame, 0, 0,
                            BigEndian(1 + Below(random, 6), 2) + BigEndian(number, 4)));
      break;
    case 5:
      frames.push_back(Make(transport::kPriorityFrame, 0, stream, BigEndian(number, 4) + "p"));
      break;
    case 6:  // the length of a message, and a part of it
      frames.push_back(Make(transport::kDataFrame, 0, stream,
                            BigEndian(Below(random, 8) / 6, 1) + BigEndian(number, 4) + any));
      break;
    case 7:
      frames.push_back(
          Make(transport::kDataFrame, static_cast<uint8_t>(Below(random, 2)), stream, any));
      break;
    case 8:
      if (OneIn(random, 4)) {
        frames.push_back(Make(transport::kGoAwayFrame, 0, 0, BigEndian(number, 8)));
        break;
      }
      frames.push_back(
          Make(transport::kHeadersFrame, 5, stream, transport::HeaderBlock({{"t", "v"}})));
      break;
    default:
      AddCall(next_stream, random, frames);
      next_stream += OneIn(random, 30) ? 4 : 2;
  }
}

// ---- Changes

uint64_t NextStream(const std::vector<Frame>& frames) {
  uint64_t last = 0;
  for (const Frame& frame : frames) {
    if (frame.type == transport::kHeadersFrame) last = std::max<uint64_t>(last, frame.stream);
  }
  return last == 0 ? 1 : std::min<uint64_t>((last | 1) + 2, kStreamBits);
}

// Makes two frames of one: DATA becomes DATA, a header block HEADERS and CONTINUATION.
void Split(std::vector<Frame>& frames, size_t at, Random& random) {
  Frame& first = frames[at];
  const bool is_block = first.type == transport::kHeadersFrame;
  if ((first.type != transport::kDataFrame && !is_block) || (first.flags & kPadded) != 0) return;
  const size_t cut = Below(random, first.payload.size() + 1);
  const uint8_t ends = is_block ? transport::kEndHeaders : transport::kEndStream;
  Frame second =
      Make(is_block ? static_cast<uint8_t>(transport::kContinuationFrame) : first.type,
           static_cast<uint8_t>(first.flags & ends), first.stream, first.payload.substr(cut));
  first.payload.resize(cut);
  first.flags &= static_cast<uint8_t>(~ends);
  frames.insert(frames.begin() + static_cast<ptrdiff_t>(at) + 1, std::move(second));
}

void JoinNext(std::vector<Frame>& frames, size_t at) {
  if (at + 1 >= frames.size()) return;
  Frame& first = frames[at];
  const Frame& second = frames[at + 1];
  const bool plain = ((first.flags | second.flags) & kPadded) == 0;
  if (!plain || first.type != transport::kDataFrame || second.type != transport::kDataFrame ||
      first.stream != second.stream) {
    return;
  }
  first.payload += second.payload;
  first.flags |= second.flags;
  frames.erase(frames.begin() + static_cast<ptrdiff_t>(at) + 1);
}

// Makes DATA a message with the right length, whatever it contains.
void MakeMessage(Frame& frame) {
  if (frame.type != transport::kDataFrame || (frame.flags & kPadded) != 0) return;
  const size_t prefix = std::min<size_t>(frame.payload.size(), 5);
  frame.payload = transport::Prefixed(frame.payload.substr(prefix));
}

void ChangeFrame(Frame& frame, Random& random, uint64_t next_stream,
                 const std::function<void(std::string&)>& change_bytes) {
  switch (Below(random, 6)) {
    case 0:
      frame.stream = static_cast<uint32_t>(AnyStream(random, next_stream));
      break;
    case 1:
      frame.flags ^= static_cast<uint8_t>(1 << Below(random, 6));
      break;
    case 2:
      if (frame.type <= transport::kHeadersFrame) Pad(frame, random);
      break;
    case 3:
      MakeMessage(frame);
      break;
    case 4:
      if (frame.type == transport::kHeadersFrame)
        frame.payload = RequestBlock(random, OneIn(random, 6));
      break;
    default:
      change_bytes(frame.payload);
  }
}

void ChangeOnce(std::vector<Frame>& frames, Random& random,
                const std::function<void(std::string&)>& change_bytes) {
  const uint64_t next_stream = NextStream(frames);
  std::vector<Frame> more;
  uint64_t next = next_stream;
  if (frames.empty() || OneIn(random, 4)) {
    AddFrames(random, next, more);
    const auto at = static_cast<ptrdiff_t>(Below(random, frames.size() + 1));
    frames.insert(frames.begin() + at, std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
    return;
  }
  const size_t at = Below(random, frames.size());
  const auto place = frames.begin() + static_cast<ptrdiff_t>(at);
  switch (Below(random, 8)) {
    case 0:
      frames.erase(place);
      break;
    case 1:
      frames.insert(frames.begin() + static_cast<ptrdiff_t>(Below(random, frames.size() + 1)),
                    Frame(*place));
      break;
    case 2:
      std::swap(frames[at], frames[Below(random, frames.size())]);
      break;
    case 3:
      Split(frames, at, random);
      break;
    case 4:
      JoinNext(frames, at);
      break;
    default:
      ChangeFrame(*place, random, next_stream, change_bytes);
  }
}

}  // namespace

std::vector<Frame> ParseFrames(absl::string_view& bytes) {
  std::vector<Frame> frames;
  const auto byte = [&bytes](size_t at) { return uint64_t{static_cast<uint8_t>(bytes[at])}; };
  while (bytes.size() >= kHeadBytes) {
    const size_t length = byte(0) << 16 | byte(1) << 8 | byte(2);
    if (bytes.size() - kHeadBytes < length) break;
    frames.push_back(Make(static_cast<uint8_t>(byte(3)), static_cast<uint8_t>(byte(4)),
                          byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8),
                          std::string(bytes.substr(kHeadBytes, length))));
    bytes.remove_prefix(kHeadBytes + length);
  }
  return frames;
}

Conversation ParseConversation(absl::string_view bytes) {
  Conversation conversation;
  conversation.preface = std::string(bytes.substr(0, kPrefaceBytes));
  bytes.remove_prefix(conversation.preface.size());
  conversation.frames = ParseFrames(bytes);
  conversation.rest = std::string(bytes);
  return conversation;
}

std::string ToBytes(const Frame& frame) {
  return transport::Frame(frame.type, frame.flags, static_cast<int32_t>(frame.stream),
                          frame.payload);
}

std::string ToBytes(const Conversation& conversation) {
  std::string bytes = conversation.preface;
  for (const Frame& frame : conversation.frames) bytes += ToBytes(frame);
  return bytes + conversation.rest;
}

Conversation RandomConversation(Random& random) {
  Conversation conversation{kPreface, {Make(transport::kSettingsFrame, 0, 0, "")}, ""};
  if (OneIn(random, 2)) {
    conversation.frames.front().payload =
        BigEndian(kAround, 2) + BigEndian(Below(random, kAllAround + 1), 4);
  }
  uint64_t next_stream = 1;
  for (uint64_t frames = Below(random, 12); frames > 0; --frames) {
    AddFrames(random, next_stream, conversation.frames);
  }
  return conversation;
}

void Change(Conversation& conversation, Random& random,
            const std::function<void(std::string&)>& change_bytes) {
  if (!OneIn(random, 50)) conversation.preface = kPreface;
  if (!OneIn(random, 10)) conversation.rest.clear();
  do {
    ChangeOnce(conversation.frames, random, change_bytes);
  } while (OneIn(random, 2));
  if (conversation.frames.size() > kMostFrames) conversation.frames.resize(kMostFrames);
}

Conversation Cross(const Conversation& first, const Conversation& second, Random& random) {
  Conversation crossed{kPreface, {}, ""};
  const auto some = [&random](const std::vector<Frame>& frames) {
    return frames.begin() + static_cast<ptrdiff_t>(Below(random, frames.size() + 1));
  };
  crossed.frames.assign(first.frames.begin(), some(first.frames));
  crossed.frames.insert(crossed.frames.end(), some(second.frames), second.frames.end());
  if (crossed.frames.size() > kMostFrames) crossed.frames.resize(kMostFrames);
  return crossed;
}

std::string Cut(absl::string_view bytes, Random& random) {
  const bool whole = OneIn(random, 3);
  std::string input;
  while (!bytes.empty()) {
    const auto step = static_cast<uint8_t>(whole || OneIn(random, 2) ? 255 : Below(random, 256));
    const absl::string_view piece = bytes.substr(0, 1 + 7 * size_t{step});
    absl::StrAppend(&input, std::string(1, static_cast<char>(step)), piece);
    bytes.remove_prefix(piece.size());
  }
  return input;
}

uint8_t AroundOf(absl::string_view input) {
  std::string begin;
  while (!input.empty() && begin.size() < kPrefaceBytes + kHeadBytes + 6 * kMostSettings) {
    absl::StrAppend(&begin, NextPiece(input));
  }
  absl::string_view bytes = begin;
  bytes = bytes.substr(std::min(bytes.size(), kPrefaceBytes), kHeadBytes + 6 * kMostSettings);
  const std::vector<Frame> frames = ParseFrames(bytes);
  if (frames.empty() || frames.front().type != transport::kSettingsFrame) return 0;
  absl::string_view settings = frames.front().payload;
  for (; settings.size() >= 6; settings.remove_prefix(6)) {
    if (settings.substr(0, 2) == BigEndian(kAround, 2)) {
      return static_cast<uint8_t>(settings[5]) & kAllAround;
    }
  }
  return 0;
}

absl::string_view NextPiece(absl::string_view& input) {
  if (input.empty()) return {};
  const size_t length = 1 + 7 * size_t{static_cast<uint8_t>(input[0])};
  input.remove_prefix(1);
  const absl::string_view piece = input.substr(0, length);
  input.remove_prefix(piece.size());
  return piece;
}

std::string Join(absl::string_view input) {
  std::string bytes;
  while (!input.empty()) absl::StrAppend(&bytes, NextPiece(input));
  return bytes;
}

}  // namespace quantd::fuzz
