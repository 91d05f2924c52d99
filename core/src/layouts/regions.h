// Cuts a view of a weight (geometry.h) into pieces that are encoded or decoded separately, and
// finds the bytes of each.
#ifndef QUANTD_SRC_LAYOUTS_REGIONS_H_
#define QUANTD_SRC_LAYOUTS_REGIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "layouts/geometry.h"
#include "quantd/convert_weight.h"
#include "quantd/executor.h"

namespace quantd {

// A rectangle of elements of a view.
struct Region {
  int64_t row = 0;
  int64_t rows = 0;
  int64_t column = 0;
  int64_t columns = 0;
};

// All regions of some rows of a view: bands of whole rows, as many as fit into a piece of
// `most_bytes`; or, if one band is larger, some columns of one.
class Regions {
 public:
  // `element_bytes`: the bytes that count for an element. `row_begin` is a multiple of the band.
  // REQUIRES: geometry.align != 0, unless pieces have whole rows of any length.
  Regions(const Geometry& geometry, int64_t row_begin, int64_t row_end, int64_t element_bytes,
          int64_t most_bytes);

  int64_t size() const { return row_pieces_ * column_pieces_; }
  Region At(int64_t index) const;

 private:
  int64_t row_begin_, row_end_, columns_;
  int64_t rows_per_piece_, columns_per_piece_;
  int64_t row_pieces_ = 0, column_pieces_ = 0;
};

// The approximate size of a piece: a thread's second-level cache, or less if a tensor is small and
// threads are many. Bands of many rows may be larger, because they are read row by row once they
// are cut.
int64_t PieceBytes(const Geometry& geometry, uint64_t all_bytes, int threads);

// A rectangle of bytes: the bytes of a region in one tensor.
struct ByteRectangle {
  uint64_t offset = 0;  // of its first byte in the tensor
  uint64_t pitch = 0;   // from one row of it to the next in the tensor
  int64_t rows = 0;
  size_t row_bytes = 0;

  size_t bytes() const { return static_cast<size_t>(rows) * row_bytes; }
  bool contiguous() const { return rows <= 1 || pitch == row_bytes; }
};

// The bytes of a region in the weight, whose elements have `element_bytes`, and in a part.
// REQUIRES: IsCut(part.role).
ByteRectangle WeightBytesOf(const Geometry& geometry, const Region& region, int64_t element_bytes);
ByteRectangle PartBytesOf(const PartGeometry& part, const Region& region);

// Memory of one task, reused for one rectangle after the other.
class Buffer {
 public:
  // Room for `size` bytes with undefined contents.
  uint8_t* Make(size_t size) {
    if (bytes_.size() < size) bytes_.resize(size);
    return bytes_.data();
  }

 private:
  std::vector<uint8_t> bytes_;
};

// Where the bytes of a rectangle are in memory.
template <typename Byte>
struct Rows {
  Byte* bytes = nullptr;
  size_t pitch = 0;  // bytes from one row to the next

  Byte* row(int64_t index) const { return bytes + static_cast<size_t>(index) * pitch; }
};

// The bytes of a source: in its memory, or read into the buffer.
absl::Status ReadRectangle(const ByteSource& source, const ByteRectangle& rectangle, Buffer& buffer,
                           Rows<const uint8_t>& rows);
// Writes a rectangle whose rows are contiguous at `bytes`.
absl::Status WriteRectangle(ByteSink& sink, const ByteRectangle& rectangle, const uint8_t* bytes);

// The buffers of a task: for the weight, and for each part.
struct Buffers {
  Buffer weight;
  std::array<Buffer, 6> parts;
};

// Calls body(region, buffers) for every region, on the executor's threads. Returns the first error
// that a call returned (no more calls begin after it), or CANCELLED if `interrupted` returned true.
absl::Status ForEachRegion(const Regions& regions, const Executor& executor,
                           Interrupted interrupted,
                           absl::FunctionRef<absl::Status(const Region&, Buffers&)> body);

}  // namespace quantd

#endif  // QUANTD_SRC_LAYOUTS_REGIONS_H_
