// Writes protobuf's wire format. For what the generated messages can't do: a tensor whose bytes are
// written later, in place, and messages that are copied in part.
#ifndef QUANTD_SERVER_WIRE_WRITER_H_
#define QUANTD_SERVER_WIRE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "server/wire/scan.h"

namespace quantd::wire {

constexpr size_t kMaxVarintSize = 10;

constexpr size_t VarintSize(uint64_t value) {
  size_t size = 1;
  while (value >= 0x80) {
    value >>= 7;
    ++size;
  }
  return size;
}

// Writes to memory. The caller ensures that it is large enough.
class Writer {
 public:
  explicit Writer(uint8_t* position) : position_(position) {}

  uint8_t* position() const { return position_; }

  void Varint(uint64_t value) {
    while (value >= 0x80) {
      *position_++ = static_cast<uint8_t>(value | 0x80);
      value >>= 7;
    }
    *position_++ = static_cast<uint8_t>(value);
  }
  void Tag(uint32_t number, WireType type) { Varint(number << 3 | static_cast<uint32_t>(type)); }
  void VarintField(uint32_t number, uint64_t value) {
    Tag(number, WireType::kVarint);
    Varint(value);
  }
  // Writes the head of a field; its `length` bytes follow.
  void BytesHeader(uint32_t number, uint64_t length) {
    Tag(number, WireType::kBytes);
    Varint(length);
  }
  void Skip(uint64_t length) { position_ += length; }

 private:
  uint8_t* position_;
};

inline void AppendBytesField(uint32_t number, absl::string_view bytes, std::string& out) {
  uint8_t head[2 * kMaxVarintSize];
  Writer writer(head);
  writer.BytesHeader(number, bytes.size());
  out.append(reinterpret_cast<char*>(head), writer.position() - head);
  out.append(bytes.data(), bytes.size());
}

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_WRITER_H_
