#include "box.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

namespace quantd::cli {
namespace {

// Copies `count` elements of `bits` (2 or 4) from bit `from` of source to bit `to` of destination.
void CopyPacked(const uint8_t* source, int64_t from, uint8_t* destination, int64_t to,
                int64_t count, int bits) {
  const int mask = (1 << bits) - 1;
  const auto copy_one = [&] {
    const int value = source[from / 8] >> (from % 8) & mask;
    uint8_t& byte = destination[to / 8];
    byte = static_cast<uint8_t>((byte & ~(mask << (to % 8))) | value << (to % 8));
    from += bits;
    to += bits;
    --count;
  };
  while (count > 0 && to % 8 != 0) copy_one();
  const int64_t bytes = count * bits / 8;
  const int shift = static_cast<int>(from % 8);
  if (shift == 0) {
    if (bytes > 0) std::memcpy(destination + to / 8, source + from / 8, bytes);
  } else {
    for (int64_t i = 0; i < bytes; ++i) {
      const uint8_t* pair = source + from / 8 + i;
      destination[to / 8 + i] = static_cast<uint8_t>(pair[0] >> shift | pair[1] << (8 - shift));
    }
  }
  from += bytes * 8;
  to += bytes * 8;
  count -= bytes * 8 / bits;
  while (count > 0) copy_one();
}

template <int kBytes>
void CopyStrided(const uint8_t* source, int64_t from_stride, uint8_t* destination,
                 int64_t to_stride, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(destination + i * to_stride * kBytes, source + i * from_stride * kBytes, kBytes);
  }
}

// Copies `count` elements from element `from` to element `to`.
void CopyRun(const uint8_t* source, int64_t from, int64_t from_stride, uint8_t* destination,
             int64_t to, int64_t to_stride, int64_t count, int bits) {
  if (bits < 8) {
    CopyPacked(source, from * bits, destination, to * bits, count, bits);
    return;
  }
  const int bytes = bits / 8;
  source += from * bytes;
  destination += to * bytes;
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(destination, source, count * bytes);
    return;
  }
  switch (bytes) {
    case 1:
      return CopyStrided<1>(source, from_stride, destination, to_stride, count);
    case 2:
      return CopyStrided<2>(source, from_stride, destination, to_stride, count);
    case 4:
      return CopyStrided<4>(source, from_stride, destination, to_stride, count);
    default:
      return CopyStrided<8>(source, from_stride, destination, to_stride, count);
  }
}

struct Dimension {
  int64_t size, from, to;  // length and strides
};

// Visits the source in the order of its memory, in the longest runs that both sides allow.
void CopyBox(const uint8_t* source, absl::Span<const int64_t> from_strides, int64_t from,
             uint8_t* destination, absl::Span<const int64_t> to_strides, int64_t to,
             absl::Span<const int64_t> size, int bits) {
  std::vector<Dimension> dimensions;
  for (size_t d = 0; d < size.size(); ++d) {
    if (size[d] == 0) return;
    if (size[d] > 1) dimensions.push_back({size[d], from_strides[d], to_strides[d]});
  }
  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension& a, const Dimension& b) { return a.from > b.from; });
  std::vector<Dimension> merged;
  for (const Dimension& next : dimensions) {
    if (!merged.empty() && merged.back().from == next.from * next.size &&
        merged.back().to == next.to * next.size) {
      merged.back() = {merged.back().size * next.size, next.from, next.to};
    } else {
      merged.push_back(next);
    }
  }
  // Runs of packed elements lie together; those of others may have strides.
  const bool together = !merged.empty() && merged.back().from == 1 && merged.back().to == 1;
  if (merged.empty() || (bits < 8 && !together)) merged.push_back({1, 1, 1});
  const Dimension run = merged.back();
  merged.pop_back();
  std::vector<int64_t> index(merged.size(), 0);
  for (;;) {
    CopyRun(source, from, run.from, destination, to, run.to, run.size, bits);
    size_t d = merged.size();
    for (;;) {
      if (d == 0) return;
      --d;
      from += merged[d].from;
      to += merged[d].to;
      if (++index[d] < merged[d].size) break;
      from -= merged[d].from * merged[d].size;
      to -= merged[d].to * merged[d].size;
      index[d] = 0;
    }
  }
}

int64_t Offset(absl::Span<const int64_t> begin, absl::Span<const int64_t> strides) {
  return std::inner_product(begin.begin(), begin.end(), strides.begin(), int64_t{0});
}

}  // namespace

Box WholeBox(absl::Span<const int64_t> shape) {
  return {Shape(shape.size(), 0), Shape(shape.begin(), shape.end())};
}

int64_t Product(absl::Span<const int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

Shape RowMajorStrides(absl::Span<const int64_t> shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

Shape ColumnMajorStrides(absl::Span<const int64_t> shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = 1; d < shape.size(); ++d) strides[d] = strides[d - 1] * shape[d - 1];
  return strides;
}

std::string GatherBox(absl::Span<const uint8_t> tensor, int bits, absl::Span<const int64_t> strides,
                      const Box& box) {
  std::string packed((Product(box.size) * bits + 7) / 8, '\0');
  CopyBox(tensor.data(), strides, Offset(box.begin, strides),
          reinterpret_cast<uint8_t*>(packed.data()), RowMajorStrides(box.size), 0, box.size, bits);
  return packed;
}

void ScatterBox(absl::Span<const uint8_t> packed, int bits, absl::Span<const int64_t> shape,
                const Box& box, absl::Span<uint8_t> tensor) {
  const Shape strides = RowMajorStrides(shape);
  CopyBox(packed.data(), RowMajorStrides(box.size), 0, tensor.data(), strides,
          Offset(box.begin, strides), box.size, bits);
}

}  // namespace quantd::cli
