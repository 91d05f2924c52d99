#include "scan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quantd/values.h"

namespace quantd::cli {
namespace {

constexpr int64_t kTile = 1024;
constexpr size_t kLanes = 8;

// Adds the elements from `first` on. All finite, as nearly every tile is: a loop without branches
// and with sums that do not wait for each other, so that the compiler makes vector code of it.
bool ScanFiniteTile(absl::Span<const float> values, Range* range, double* signal) {
  float low[kLanes] = {}, high[kLanes] = {};
  double squares[kLanes] = {};
  int bad = 0;
  const auto add = [&](size_t i, size_t lane) {
    const float value = values[i];
    low[lane] = value < low[lane] ? value : low[lane];
    high[lane] = value > high[lane] ? value : high[lane];
    squares[lane] += static_cast<double>(value) * value;
    bad |= !(std::fabs(value) <= std::numeric_limits<float>::max());
  };
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
  }
  for (; i < values.size(); ++i) add(i, 0);
  if (bad != 0) return false;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    range->Add({low[lane], high[lane]});
    *signal += squares[lane];
  }
  return true;
}

void ScanTile(absl::Span<const float> values, int64_t first, Range* range, Scan* scan) {
  if (ScanFiniteTile(values, range, &scan->signal)) return;
  for (size_t i = 0; i < values.size(); ++i) {
    const float value = values[i];
    if (!std::isfinite(value)) {
      if (scan->first_non_finite < 0) scan->first_non_finite = first + static_cast<int64_t>(i);
      ++scan->non_finite;
      continue;
    }
    range->Add({value, value});
    scan->signal += static_cast<double>(value) * value;
  }
}

// One element a block, as along a last axis with a scale for each index.
void ScanColumns(absl::Span<const float> values, int64_t first, Range* ranges, Scan* scan) {
  for (size_t i = 0; i < values.size(); ++i) {
    const float value = values[i];
    if (std::fabs(value) <= std::numeric_limits<float>::max()) {
      ranges[i].minimum = std::min(ranges[i].minimum, value);
      ranges[i].maximum = std::max(ranges[i].maximum, value);
      scan->signal += static_cast<double>(value) * value;
    } else {
      if (scan->first_non_finite < 0) scan->first_non_finite = first + static_cast<int64_t>(i);
      ++scan->non_finite;
    }
  }
}

}  // namespace

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

void ForEachBlockRow(const Box& box, const BlockGrid& grid,
                     absl::FunctionRef<void(const BlockRow& row)> visit) {
  const Box blocks = grid.BlocksOf(box);
  const Shape strides = RowMajorStrides(blocks.size);
  if (Product(box.size) == 0) return;
  // Dimensions behind `split` lie within one block each; so `inner` elements at a time do.
  size_t split = box.size.size();
  int64_t inner = 1;
  while (split > 0 && blocks.size[split - 1] == 1) inner *= box.size[--split];
  if (split == 0) return visit({0, inner, inner, 0});
  --split;

  BlockRow row;
  row.count = box.size[split] * inner;
  row.run = grid.block[split] * inner;
  Shape index(split, 0);
  for (;;) {
    row.block = 0;
    for (size_t d = 0; d < split; ++d) {
      const int64_t position = (box.begin[d] + index[d]) / grid.block[d];
      if (grid.counts[d] > 1) row.block += (position - blocks.begin[d]) * strides[d];
    }
    visit(row);
    row.first += row.count;
    size_t d = split;
    for (;;) {
      if (d == 0) return;
      --d;
      if (++index[d] < box.size[d]) break;
      index[d] = 0;
    }
  }
}

void ForEachBlockRun(const Box& box, const BlockGrid& grid,
                     absl::FunctionRef<void(int64_t first, int64_t count, int64_t block)> visit) {
  ForEachBlockRow(box, grid, [&](const BlockRow& row) {
    int64_t block = row.block;
    for (int64_t at = 0; at < row.count; at += row.run, ++block) {
      visit(row.first + at, std::min(row.run, row.count - at), block);
    }
  });
}

Scan ScanPiece(absl::Span<const float> values, const Box& box, const BlockGrid& grid) {
  Scan scan;
  scan.ranges.resize(Product(grid.BlocksOf(box).size));
  ForEachBlockRow(box, grid, [&](const BlockRow& row) {
    if (row.run == 1) {
      ScanColumns(values.subspan(row.first, row.count), row.first, &scan.ranges[row.block], &scan);
      return;
    }
    Range* range = &scan.ranges[row.block];
    for (int64_t at = 0; at < row.count; at += row.run, ++range) {
      const int64_t count = std::min(row.run, row.count - at);
      for (int64_t tile = 0; tile < count; tile += kTile) {
        const int64_t first = row.first + at + tile;
        ScanTile(values.subspan(first, std::min(kTile, count - tile)), first, range, &scan);
      }
    }
  });
  scan.finite = values.size() - scan.non_finite;
  return scan;
}

}  // namespace quantd::cli
