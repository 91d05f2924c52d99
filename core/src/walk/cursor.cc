#include "walk/cursor.h"

#include <algorithm>
#include <cstring>

namespace quantd {
namespace {

// Shorter windows are gathered with their neighbours: a kernel call costs about what 512 elements
// do.
constexpr int64_t kWorthACall = 512;

}  // namespace

void Cursor::Seek(int64_t element) {
  element_ = element;
  const size_t byte = BytesOf(element);
  if (byte >= bytes_.size()) {
    chunk_ = bytes_.chunk_count();
    return;
  }
  chunk_ = bytes_.FindChunk(byte);
  offset_ = byte - bytes_.chunk_begin(chunk_);
}

int64_t Cursor::InPlace(int64_t rest) const {
  if (chunk_ == bytes_.chunk_count()) return 0;
  const size_t left = bytes_.chunk(chunk_).size() - offset_;
  if (left >= BytesOf(rest)) return rest;
  return static_cast<int64_t>(left) * 8 / bits_ / kGroup * kGroup;
}

void Cursor::SkipFinished() {
  while (chunk_ < bytes_.chunk_count() && offset_ == bytes_.chunk(chunk_).size()) {
    ++chunk_;
    offset_ = 0;
  }
}

Cursor::Window Cursor::Next(int64_t end, int64_t most, uint8_t* buffer) {
  const int64_t rest = std::min(end - element_, most);
  Window window{nullptr, element_, InPlace(rest)};
  if (window.elements == rest || window.elements >= kWorthACall) {
    window.data = bytes_.chunk(chunk_).data() + offset_;
    offset_ += BytesOf(window.elements);
    SkipFinished();
    element_ += window.elements;
    return window;
  }

  window.data = buffer;
  window.elements = 0;
  const int64_t tile = std::min(rest, kTile);
  do {
    const int64_t group = std::min(kGroup, tile - window.elements);
    for (size_t left = BytesOf(group); left > 0;) {
      const ByteChunks::Chunk chunk = bytes_.chunk(chunk_).subspan(offset_);
      const size_t size = std::min(left, chunk.size());
      std::memcpy(buffer, chunk.data(), size);
      buffer += size;
      left -= size;
      offset_ += size;
      SkipFinished();
    }
    window.elements += group;
  } while (window.elements < tile && InPlace(rest - window.elements) < kWorthACall);
  element_ += window.elements;
  return window;
}

}  // namespace quantd
