#include "quantd/bytes.h"

#include <algorithm>
#include <cstring>

namespace quantd {

void ByteChunks::Append(Chunk chunk) {
  if (chunk.empty()) return;
  const size_t begin = size();
  chunks_.push_back(chunk);
  ends_.push_back(begin + chunk.size());
}

void ByteChunks::Clear() {
  chunks_.clear();
  ends_.clear();
}

size_t ByteChunks::FindChunk(size_t offset) const {
  return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), offset) - ends_.begin());
}

void ByteChunks::CopyTo(size_t offset, absl::Span<uint8_t> out) const {
  if (out.empty()) return;
  size_t index = FindChunk(offset);
  size_t skip = offset - chunk_begin(index);
  for (size_t done = 0; done < out.size(); ++index) {
    const size_t count = std::min(out.size() - done, chunks_[index].size() - skip);
    std::memcpy(out.data() + done, chunks_[index].data() + skip, count);
    done += count;
    skip = 0;
  }
}

}  // namespace quantd
