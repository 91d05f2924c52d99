#include "scan.h"

#include <algorithm>
#include <cmath>

#include "quantd/values.h"

namespace quantd::cli {

void Range::Add(const Range& other) {
  minimum = std::min(minimum, other.minimum);
  maximum = std::max(maximum, other.maximum);
}

std::vector<float> ToFloats(DataType type, int64_t elements, absl::string_view bytes) {
  const ByteChunks chunks(
      absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  if (Info(type).kind != DataTypeKind::kInteger) return UnpackFloats(type, elements, chunks);
  const std::vector<int64_t> integers = UnpackIntegers(type, elements, chunks);
  return {integers.begin(), integers.end()};
}

void ForEachBlockRun(const Box& box, const BlockGrid& grid,
                     absl::FunctionRef<void(int64_t first, int64_t count, int64_t block)> visit) {
  const Box blocks = grid.BlocksOf(box);
  const Shape strides = RowMajorStrides(blocks.size);
  if (Product(box.size) == 0) return;
  // Dimensions behind `split` lie within one block each; so `inner` elements at a time do.
  size_t split = box.size.size();
  int64_t inner = 1;
  while (split > 0 && blocks.size[split - 1] == 1) inner *= box.size[--split];
  if (split == 0) return visit(0, inner, 0);
  --split;

  Shape index(split, 0);
  int64_t first = 0;
  for (;;) {
    int64_t block = 0;
    for (size_t d = 0; d < split; ++d) {
      const int64_t position = (box.begin[d] + index[d]) / grid.block[d];
      if (grid.counts[d] > 1) block += (position - blocks.begin[d]) * strides[d];
    }
    for (int64_t at = 0; at < box.size[split]; at += grid.block[split], ++block) {
      const int64_t count = std::min(grid.block[split], box.size[split] - at) * inner;
      visit(first, count, block);
      first += count;
    }
    size_t d = split;
    for (;;) {
      if (d == 0) return;
      --d;
      if (++index[d] < box.size[d]) break;
      index[d] = 0;
    }
  }
}

Scan ScanPiece(absl::Span<const float> values, const Box& box, const BlockGrid& grid) {
  Scan scan;
  scan.ranges.resize(Product(grid.BlocksOf(box).size));
  ForEachBlockRun(box, grid, [&](int64_t first, int64_t count, int64_t block) {
    Range range;
    double signal = 0;
    for (int64_t i = first; i < first + count; ++i) {
      const float value = values[i];
      if (!std::isfinite(value)) {
        if (scan.first_non_finite < 0) scan.first_non_finite = i;
        ++scan.non_finite;
        continue;
      }
      range.minimum = std::min(range.minimum, value);
      range.maximum = std::max(range.maximum, value);
      signal += static_cast<double>(value) * value;
    }
    scan.ranges[block].Add(range);
    scan.signal += signal;
  });
  scan.finite = values.size() - scan.non_finite;
  return scan;
}

}  // namespace quantd::cli
