#include "server/wire/scan.h"

#include <array>

namespace quantd::wire {
namespace {

constexpr int kMaxTagBytes = 5;
constexpr int kMaxVarintBytes = 10;
constexpr int kMaxLengthBytes = 5;
// protobuf stores lengths in an int, and needs 16 bytes of slack.
constexpr uint64_t kMaxLength = INT32_MAX - 16;
constexpr int kMaxDepth = 100;  // of nested groups and messages; protobuf's default

}  // namespace

// The readers return the position after what they have read, or nullptr.
const uint8_t* Scanner::ReadVarint(const uint8_t* at, int most, uint64_t& value) const {
  const uint8_t* const end = rest_.data() + rest_.size();
  value = 0;
  for (int i = 0; i < most && at != end; ++i) {
    const uint8_t byte = *at++;
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) return at;
  }
  return nullptr;
}

const uint8_t* Scanner::ReadValue(const uint8_t* at, Field& field) const {
  const auto left = static_cast<uint64_t>(rest_.data() + rest_.size() - at);
  uint64_t value = 0;
  switch (field.type) {
    case WireType::kVarint:
      return ReadVarint(at, kMaxVarintBytes, field.varint);
    case WireType::kFixed64:
      return left < 8 ? nullptr : at + 8;
    case WireType::kFixed32:
      return left < 4 ? nullptr : at + 4;
    case WireType::kBytes: {
      const uint8_t* const begin = ReadVarint(at, kMaxLengthBytes, value);
      if (begin == nullptr || value > kMaxLength) return nullptr;
      if (value > left - static_cast<uint64_t>(begin - at)) return nullptr;
      field.payload = {begin, static_cast<size_t>(value)};
      return begin + value;
    }
    case WireType::kStartGroup:
      return SkipGroup(at, field.number);
    default:
      return nullptr;
  }
}

// Skips the fields of a group and its end. A loop, not a recursion, because the client chooses the
// depth.
const uint8_t* Scanner::SkipGroup(const uint8_t* at, uint32_t number) const {
  std::array<uint32_t, kMaxDepth> open;  // numbers of the groups that have not ended yet
  const int most = kMaxDepth - depth_;
  int depth = 0;
  open[depth++] = number;
  while (depth != 0) {
    uint64_t tag = 0;
    at = MayReadOne() ? ReadVarint(at, kMaxTagBytes, tag) : nullptr;
    if (at == nullptr) return nullptr;
    Field field;
    field.number = static_cast<uint32_t>(tag) >> 3;
    field.type = static_cast<WireType>(tag & 7);
    if (field.number == 0) return nullptr;
    if (field.type == WireType::kEndGroup) {
      if (field.number != open[--depth]) return nullptr;
    } else if (field.type == WireType::kStartGroup) {
      if (depth >= most) return nullptr;
      open[depth++] = field.number;
    } else {
      at = ReadValue(at, field);
      if (at == nullptr) return nullptr;
    }
  }
  return at;
}

const uint8_t* Scanner::ReadTag(Field& field) const {
  uint64_t tag = 0;
  const uint8_t* const at = ReadVarint(rest_.data(), kMaxTagBytes, tag);
  field.number = static_cast<uint32_t>(tag) >> 3;
  field.type = static_cast<WireType>(tag & 7);
  field.payload = {};
  return field.number == 0 ? nullptr : at;
}

bool Scanner::Next(Field& field) {
  if (!ok_ || rest_.empty()) return false;
  const uint8_t* at = MayReadOne() ? ReadTag(field) : nullptr;
  if (at != nullptr) at = ReadValue(at, field);
  if (at == nullptr) {
    ok_ = false;
    return false;
  }
  const auto size = static_cast<size_t>(at - rest_.data());
  field.whole = rest_.first(size);
  rest_.remove_prefix(size);
  return true;
}

}  // namespace quantd::wire
