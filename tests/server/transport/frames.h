// HTTP/2 frames made by hand, so that a test can send what no library would.
#ifndef QUANTD_TESTS_SERVER_TRANSPORT_FRAMES_H_
#define QUANTD_TESTS_SERVER_TRANSPORT_FRAMES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace quantd::transport {

using Fields = std::vector<std::pair<std::string, std::string>>;

enum FrameType : uint8_t {
  kDataFrame = 0,
  kHeadersFrame = 1,
  kPriorityFrame = 2,
  kRstFrame = 3,
  kSettingsFrame = 4,
  kPingFrame = 6,
  kGoAwayFrame = 7,
  kWindowFrame = 8,
  kContinuationFrame = 9,
};
inline constexpr uint8_t kEndStream = 1;
inline constexpr uint8_t kAck = 1;
inline constexpr uint8_t kEndHeaders = 4;
inline constexpr uint8_t kPadded = 8;

inline constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

inline std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

inline std::string Frame(uint8_t type, uint8_t flags, int32_t id, absl::string_view payload) {
  std::string frame = BigEndian(payload.size(), 3);
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  frame += BigEndian(static_cast<uint32_t>(id), 4);
  frame.append(payload.data(), payload.size());
  return frame;
}

// `padding`: -1: none, else the number of bytes behind the data, besides the one with that number.
inline std::string Data(int32_t id, absl::string_view bytes, bool ends = false, int padding = -1) {
  const uint8_t flags = ends ? kEndStream : 0;
  if (padding < 0) return Frame(kDataFrame, flags, id, bytes);
  std::string payload(1, static_cast<char>(padding));
  payload.append(bytes.data(), bytes.size());
  payload.append(static_cast<size_t>(padding), '\0');
  return Frame(kDataFrame, flags | kPadded, id, payload);
}

inline std::string Settings(const std::vector<std::pair<uint16_t, uint32_t>>& settings) {
  std::string payload;
  for (const auto& [key, value] : settings) payload += BigEndian(key, 2) + BigEndian(value, 4);
  return Frame(kSettingsFrame, 0, 0, payload);
}
inline std::string SettingsAck() { return Frame(kSettingsFrame, kAck, 0, ""); }
inline std::string Ping(uint64_t word) { return Frame(kPingFrame, 0, 0, BigEndian(word, 8)); }
inline std::string Rst(int32_t id, uint32_t code = 8) {
  return Frame(kRstFrame, 0, id, BigEndian(code, 4));
}
inline std::string WindowUpdate(int32_t id, uint32_t bytes) {
  return Frame(kWindowFrame, 0, id, BigEndian(bytes, 4));
}

// A string in HPACK's encoding, not compressed.
inline std::string HpackString(absl::string_view text) {
  std::string coded;
  size_t left = text.size();
  if (left < 127) {
    coded.push_back(static_cast<char>(left));
  } else {
    coded.push_back(127);
    for (left -= 127; left >= 128; left /= 128)
      coded.push_back(static_cast<char>(left % 128 + 128));
    coded.push_back(static_cast<char>(left));
  }
  coded.append(text.data(), text.size());
  return coded;
}

inline std::string HeaderBlock(const Fields& fields) {
  std::string block;
  for (const auto& [name, value] : fields) {
    block.push_back(0);  // a literal that is not indexed
    block += HpackString(name) + HpackString(value);
  }
  return block;
}

inline Fields CallFields(absl::string_view path, const Fields& more = {}) {
  Fields fields = {{":method", "POST"},
                   {":scheme", "http"},
                   {":path", std::string(path)},
                   {":authority", "test"},
                   {"content-type", "application/grpc"},
                   {"te", "trailers"}};
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

inline std::string Headers(int32_t id, const Fields& fields, bool ends = false) {
  return Frame(kHeadersFrame, kEndHeaders | (ends ? kEndStream : 0), id, HeaderBlock(fields));
}
inline std::string CallHead(int32_t id, absl::string_view path, bool ends = false) {
  return Headers(id, CallFields(path), ends);
}

// A message with gRPC's five bytes before it.
inline std::string Prefixed(absl::string_view message) {
  std::string bytes(1, '\0');
  bytes += BigEndian(message.size(), 4);
  bytes.append(message.data(), message.size());
  return bytes;
}

// Bytes in which no two nearby places look alike.
inline std::string Pattern(uint64_t seed, size_t size) {
  std::string bytes(size, '\0');
  uint64_t word = seed * 0x9E3779B97F4A7C15 + 1;
  for (size_t i = 0; i < size; ++i) {
    if (i % 8 == 0) word = word * 6364136223846793005 + 1442695040888963407;
    bytes[i] = static_cast<char>(word >> (8 * (i % 8)));
  }
  return bytes;
}

// `bytes` as DATA frames of `size` bytes each; the last one ends the stream if `ends`.
inline std::string DataFrames(int32_t id, absl::string_view bytes, size_t size, bool ends = false) {
  std::string frames;
  while (bytes.size() > size) {
    frames += Data(id, bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return frames + Data(id, bytes, ends);
}

}  // namespace quantd::transport

#endif  // QUANTD_TESTS_SERVER_TRANSPORT_FRAMES_H_
