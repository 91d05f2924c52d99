#include "layouts/regions.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "pool/watch.h"

namespace quantd {
namespace {

constexpr int64_t kPieceBytes = 512 * 1024;
constexpr int64_t kBandBytes = 2 * 1024 * 1024;
constexpr int64_t kLeastBytes = 64 * 1024;
// More pieces than threads, so that a delayed thread does not delay the whole operation.
constexpr int64_t kPiecesPerThread = 4;

constexpr int64_t RoundDown(int64_t value, int64_t multiple) { return value - value % multiple; }
constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return DivideUp(value, multiple) * multiple;
}

}  // namespace

int64_t PieceBytes(const Geometry& geometry, uint64_t all_bytes, int threads) {
  const int64_t most = geometry.band > 1 ? kBandBytes : kPieceBytes;
  const auto pieces = static_cast<uint64_t>(threads) * kPiecesPerThread;
  const auto share = static_cast<int64_t>(std::min<uint64_t>(all_bytes / pieces, kBandBytes));
  return threads <= 1 ? most : std::clamp(share, kLeastBytes, most);
}

Regions::Regions(const Geometry& geometry, int64_t row_begin, int64_t row_end,
                 int64_t element_bytes, int64_t most_bytes)
    : row_begin_(row_begin), row_end_(row_end), columns_(geometry.columns) {
  const int64_t rows = row_end - row_begin;
  if (rows == 0 || columns_ == 0) return;
  const int64_t column_bytes = geometry.band * element_bytes;  // of one column of a band
  if (geometry.align == 0 || columns_ <= most_bytes / column_bytes) {
    const int64_t bands = std::max<int64_t>(most_bytes / column_bytes / columns_, 1);
    rows_per_piece_ = std::min(bands, DivideUp(rows, geometry.band)) * geometry.band;
    columns_per_piece_ = columns_;
  } else {
    rows_per_piece_ = geometry.band;
    // Pieces of about the same length.
    const int64_t most =
        std::max(RoundDown(most_bytes / column_bytes, geometry.align), geometry.align);
    columns_per_piece_ = RoundUp(DivideUp(columns_, DivideUp(columns_, most)), geometry.align);
  }
  row_pieces_ = DivideUp(rows, rows_per_piece_);
  column_pieces_ = DivideUp(columns_, columns_per_piece_);
}

Region Regions::At(int64_t index) const {
  Region region;
  region.row = row_begin_ + index / column_pieces_ * rows_per_piece_;
  region.rows = std::min(rows_per_piece_, row_end_ - region.row);
  region.column = index % column_pieces_ * columns_per_piece_;
  region.columns = std::min(columns_per_piece_, columns_ - region.column);
  return region;
}

ByteRectangle WeightBytesOf(const Geometry& geometry, const Region& region, int64_t element_bytes) {
  return {.offset = static_cast<uint64_t>((region.row * geometry.columns + region.column) *
                                          element_bytes),
          .pitch = static_cast<uint64_t>(geometry.columns * element_bytes),
          .rows = region.rows,
          .row_bytes = static_cast<size_t>(region.columns * element_bytes)};
}

ByteRectangle PartBytesOf(const PartGeometry& part, const Region& region) {
  const auto column = static_cast<uint64_t>(region.column / part.column_step * part.unit_bytes);
  return {.offset = static_cast<uint64_t>(region.row / part.row_step) * part.row_bytes + column,
          .pitch = part.row_bytes,
          .rows = DivideUp(region.row % part.row_step + region.rows, part.row_step),
          .row_bytes = static_cast<size_t>(
              DivideUp(region.column % part.column_step + region.columns, part.column_step) *
              part.unit_bytes)};
}

absl::Status ReadRectangle(const ByteSource& source, const ByteRectangle& rectangle, Buffer& buffer,
                           Rows<const uint8_t>& rows) {
  if (const uint8_t* const memory = source.Memory(); memory != nullptr) {
    rows = {memory + rectangle.offset, static_cast<size_t>(rectangle.pitch)};
    return absl::OkStatus();
  }
  uint8_t* const bytes = buffer.Make(rectangle.bytes());
  rows = {bytes, rectangle.row_bytes};
  if (rectangle.contiguous()) {
    return source.Read(rectangle.offset, {bytes, rectangle.bytes()});
  }
  for (int64_t row = 0; row < rectangle.rows; ++row) {
    const auto at = static_cast<uint64_t>(row);
    const absl::Status status =
        source.Read(rectangle.offset + at * rectangle.pitch,
                    {bytes + at * rectangle.row_bytes, rectangle.row_bytes});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status WriteRectangle(ByteSink& sink, const ByteRectangle& rectangle, const uint8_t* bytes) {
  if (rectangle.contiguous()) return sink.Write(rectangle.offset, {bytes, rectangle.bytes()});
  for (int64_t row = 0; row < rectangle.rows; ++row) {
    const auto at = static_cast<uint64_t>(row);
    const absl::Status status = sink.Write(rectangle.offset + at * rectangle.pitch,
                                           {bytes + at * rectangle.row_bytes, rectangle.row_bytes});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ForEachRegion(const Regions& regions, const Executor& executor,
                           Interrupted interrupted,
                           absl::FunctionRef<absl::Status(const Region&, Buffers&)> body) {
  Watch watch(interrupted);
  std::mutex mutex;
  absl::Status error;  // guarded by the mutex
  // A task processes one region after the other, so that its buffers are reused and files are read
  // from beginning to end.
  std::atomic<int64_t> next = 0;
  const int64_t tasks = std::min<int64_t>(executor.threads(), regions.size());
  executor.ParallelFor(static_cast<size_t>(tasks), [&](size_t) {
    Buffers buffers;
    for (int64_t index = next++; index < regions.size(); index = next++) {
      if (watch.Stopped()) return;
      absl::Status status = body(regions.At(index), buffers);
      if (status.ok()) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      if (error.ok()) error = std::move(status);
      watch.Stop();
    }
  });
  if (!error.ok()) return error;
  return watch.Status();
}

absl::Status MemorySource::Read(uint64_t offset, absl::Span<uint8_t> to) const {
  if (to.empty()) return absl::OkStatus();
  std::memcpy(to.data(), bytes_.data() + offset, to.size());
  return absl::OkStatus();
}

absl::Status MemorySink::Write(uint64_t offset, absl::Span<const uint8_t> from) {
  if (from.empty()) return absl::OkStatus();
  std::memcpy(bytes_.data() + offset, from.data(), from.size());
  return absl::OkStatus();
}

}  // namespace quantd
