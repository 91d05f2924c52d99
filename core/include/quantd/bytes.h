// Bytes that may lie in several pieces, as a network hands them over. Reading them needs no copy
// into one.
//
//   ByteChunks bytes;
//   bytes.Append(slice_0);  bytes.Append(slice_1);
//   bytes.CopyTo(offset, destination);
//
// Owns the list of pieces, not the bytes: they must outlive it. Const methods are safe from any
// thread.
#ifndef QUANTD_BYTES_H_
#define QUANTD_BYTES_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace quantd {

class ByteChunks {
 public:
  using Chunk = absl::Span<const uint8_t>;

  ByteChunks() = default;
  explicit ByteChunks(Chunk contiguous) { Append(contiguous); }

  // Adds a piece behind the last one; an empty one is left out.
  void Append(Chunk chunk);
  void Clear();

  // Bytes of all pieces together.
  size_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  size_t chunk_count() const { return chunks_.size(); }
  Chunk chunk(size_t index) const { return chunks_[index]; }
  // Offset of a piece's first byte in the whole.
  size_t chunk_begin(size_t index) const { return index == 0 ? 0 : ends_[index - 1]; }
  // The piece that holds byte `offset`. REQUIRES: offset < size().
  size_t FindChunk(size_t offset) const;
  // Copies out.size() bytes from `offset`. REQUIRES: offset + out.size() <= size().
  void CopyTo(size_t offset, absl::Span<uint8_t> out) const;

 private:
  absl::InlinedVector<Chunk, 4> chunks_;
  absl::InlinedVector<size_t, 4> ends_;  // ends_[i]: bytes of chunks 0 to i
};

}  // namespace quantd

#endif  // QUANTD_BYTES_H_
