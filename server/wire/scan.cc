#include "server/wire/scan.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace quantd::wire {
namespace {

constexpr int kMaxTagBytes = 5;
constexpr int kMaxVarintBytes = 10;
// protobuf keeps lengths in an int and 16 bytes of slack.
constexpr uint64_t kMaxLength = INT32_MAX - 16;

}  // namespace

Scanner::Scanner(const SliceList& message) : message_(&message), remaining_(message.size()) {
  if (message.slice_count() != 0) {
    const absl::Span<const uint8_t> slice = message.slice(0);
    position_ = slice.data();
    slice_end_ = slice.data() + slice.size();
  }
}

bool Scanner::ReadByte(uint8_t& byte) {
  if (remaining_ == 0) return Fail();
  while (position_ == slice_end_) {
    const absl::Span<const uint8_t> slice = message_->slice(++slice_);
    position_ = slice.data();
    slice_end_ = slice.data() + slice.size();
  }
  byte = *position_++;
  --remaining_;
  return true;
}

bool Scanner::ReadVarint(uint64_t& value) {
  value = 0;
  for (int i = 0; i < kMaxVarintBytes; ++i) {
    uint8_t byte;
    if (!ReadByte(byte)) return false;
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) return true;
  }
  return Fail();
}

bool Scanner::ReadTag(uint32_t& tag) {
  tag = 0;
  for (int i = 0; i < kMaxTagBytes; ++i) {
    uint8_t byte;
    if (!ReadByte(byte)) return false;
    tag |= static_cast<uint32_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) return true;
  }
  return Fail();
}

bool Scanner::ReadLength(uint64_t& length) {
  length = 0;
  for (int i = 0; i < kMaxTagBytes; ++i) {
    uint8_t byte;
    if (!ReadByte(byte)) return false;
    length |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) return length <= kMaxLength && length <= remaining_ ? true : Fail();
  }
  return Fail();
}

template <typename Visit>
void Scanner::ForEachPiece(Visit visit) const {
  size_t left = remaining_;
  size_t slice = slice_;
  absl::Span<const uint8_t> piece(position_, slice_end_ - position_);
  while (left != 0) {
    const size_t taken = std::min(left, piece.size());
    visit(piece.first(taken));
    left -= taken;
    if (left != 0) piece = message_->slice(++slice);
  }
}

bool Scanner::ReadBytes(void* destination, size_t count) {
  if (count > remaining_) return Fail();
  Scanner part = *this;
  part.remaining_ = count;
  auto* out = static_cast<uint8_t*>(destination);
  part.ForEachPiece([&out](absl::Span<const uint8_t> piece) {
    if (!piece.empty()) std::memcpy(out, piece.data(), piece.size());
    out += piece.size();
  });
  return Skip(count);
}

bool Scanner::Skip(size_t count) {
  if (count > remaining_) return Fail();
  remaining_ -= count;
  while (count > static_cast<size_t>(slice_end_ - position_)) {
    count -= slice_end_ - position_;
    const absl::Span<const uint8_t> slice = message_->slice(++slice_);
    position_ = slice.data();
    slice_end_ = slice.data() + slice.size();
  }
  position_ += count;
  return true;
}

// Reads a field's value, but only the length of bytes. Groups are the caller's.
bool Scanner::ReadValue(Field& field) {
  switch (field.type) {
    case WireType::kVarint:
      return ReadVarint(field.value);
    case WireType::kFixed64:
      return ReadBytes(&field.value, 8);
    case WireType::kFixed32: {
      uint32_t value;
      if (!ReadBytes(&value, 4)) return false;
      field.value = value;
      return true;
    }
    case WireType::kBytes:
      return ReadLength(field.value);
    default:
      return Fail();
  }
}

// The fields of a group and its end. A loop and not a recursion: the depth is the client's choice.
bool Scanner::SkipGroup(uint32_t number) {
  std::array<uint32_t, kMaxDepth> open;  // numbers of the groups that are not ended yet
  int depth = 0;
  if (depth_ == 0) return Fail();
  open[depth++] = number;
  while (depth != 0) {
    uint32_t tag;
    if (!ReadTag(tag)) return false;
    Field field{.number = tag >> 3, .type = static_cast<WireType>(tag & 7)};
    if (field.type == WireType::kEndGroup) {
      if (field.number != open[--depth]) return Fail();
      continue;
    }
    if (field.number == 0) return Fail();
    if (field.type == WireType::kStartGroup) {
      if (depth == depth_) return Fail();
      open[depth++] = field.number;
      continue;
    }
    if (!ReadValue(field)) return false;
    if (field.type == WireType::kBytes && !Skip(field.value)) return false;
  }
  return true;
}

bool Scanner::Next(Field& field) {
  if (!ok_) return false;
  if (payload_ != 0) {
    Skip(payload_);  // ReadLength has seen that it is there
    payload_ = 0;
  }
  while (remaining_ != 0) {
    uint32_t tag;
    if (!ReadTag(tag)) return false;
    field.number = tag >> 3;
    field.type = static_cast<WireType>(tag & 7);
    if (field.number == 0) return Fail();
    if (field.type == WireType::kStartGroup) {
      if (!SkipGroup(field.number)) return false;
      continue;
    }
    if (!ReadValue(field)) return false;
    if (field.type == WireType::kBytes) payload_ = field.value;
    return true;
  }
  return false;
}

Scanner Scanner::Payload() const {
  Scanner payload = *this;
  payload.remaining_ = payload_;
  payload.payload_ = 0;
  payload.depth_ = depth_ - 1;
  return payload;
}

size_t Scanner::CountVarints() const {
  size_t count = 0;
  ForEachPiece([&count](absl::Span<const uint8_t> piece) {
    count += std::count_if(piece.begin(), piece.end(), [](uint8_t byte) { return byte < 0x80; });
  });
  return count;
}

void Scanner::AppendTo(ByteChunks& chunks) const {
  ForEachPiece([&chunks](absl::Span<const uint8_t> piece) { chunks.Append(piece); });
}

std::string Scanner::Copy() const {
  std::string bytes;
  bytes.reserve(remaining_);
  ForEachPiece([&bytes](absl::Span<const uint8_t> piece) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return bytes;
}

}  // namespace quantd::wire
