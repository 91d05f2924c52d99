#include "boxes.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

namespace quantd::client::split {
namespace {

// Copies `count` bits, whatever the width of their elements; the lowest bits of a byte come first.
// Accesses only bytes that contain some of the bits.
void CopyBits(const uint8_t* source, int64_t from, uint8_t* destination, int64_t to,
              int64_t count) {
  // Reads at most 8 bits, which may cross the end of a byte of the source.
  const auto read = [&](int64_t bits) {
    const int shift = static_cast<int>(from % 8);
    int value = source[from / 8] >> shift;
    if (shift + bits > 8) value |= source[from / 8 + 1] << (8 - shift);
    from += bits;
    return value;
  };
  // Copies bits that are inside of one byte of the destination.
  const auto copy = [&](int64_t bits) {
    if (bits == 0) return;
    const int shift = static_cast<int>(to % 8), mask = ((1 << bits) - 1) << shift;
    uint8_t& byte = destination[to / 8];
    byte = static_cast<uint8_t>((byte & ~mask) | (read(bits) << shift & mask));
    to += bits;
    count -= bits;
  };
  copy(std::min(count, (8 - to % 8) % 8));
  const int64_t bytes = count / 8;
  const uint8_t* const begin = source + from / 8;
  uint8_t* const whole = destination + to / 8;
  const int shift = static_cast<int>(from % 8);
  if (shift == 0) {
    if (bytes > 0) std::memcpy(whole, begin, static_cast<size_t>(bytes));
  } else {
    for (int64_t i = 0; i < bytes; ++i)
      whole[i] = static_cast<uint8_t>(begin[i] >> shift | begin[i + 1] << (8 - shift));
  }
  from += bytes * 8;
  to += bytes * 8;
  count -= bytes * 8;
  copy(count);
}

// Visits the elements of `box` in runs that are contiguous in a tensor of `shape`: visit(offset in
// the tensor, offset in the box, elements).
void ForEachRun(const Dimensions& shape, const Box& box,
                const std::function<void(int64_t, int64_t, int64_t)>& visit) {
  const int64_t elements = Product(box.size);
  if (elements == 0) return;
  // Dimensions after `split` are complete, so that `run` elements are contiguous.
  size_t split = shape.size();
  int64_t run = 1;
  while (split > 0) {
    --split;
    run *= box.size[split];
    if (box.size[split] != shape[split]) break;
  }
  const Dimensions strides = Strides(shape);
  Dimensions index(split, 0);
  for (int64_t done = 0; done < elements; done += run) {
    int64_t offset = shape.empty() ? 0 : box.begin[split] * strides[split];
    for (size_t d = 0; d < split; ++d) offset += (box.begin[d] + index[d]) * strides[d];
    visit(offset, done, run);
    for (size_t d = split; d-- > 0;) {
      if (++index[d] < box.size[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace

int64_t Product(const Dimensions& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{1}, std::multiplies<>());
}

Dimensions Strides(const Dimensions& shape) {
  Dimensions strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

int64_t BytesOf(int64_t elements, int bits) {
  return elements / 8 * bits + (elements % 8 * bits + 7) / 8;
}

void CopyElements(const std::string& source, int64_t from, std::string& destination, int64_t to,
                  int64_t count, int bits) {
  if (count <= 0) return;
  CopyBits(reinterpret_cast<const uint8_t*>(source.data()), from * bits,
           reinterpret_cast<uint8_t*>(destination.data()), to * bits, count * bits);
}

std::string GatherBox(const std::string& tensor, int bits, const Dimensions& shape,
                      const Box& box) {
  std::string packed(static_cast<size_t>(BytesOf(Product(box.size), bits)), '\0');
  ForEachRun(shape, box, [&](int64_t offset, int64_t done, int64_t run) {
    CopyElements(tensor, offset, packed, done, run, bits);
  });
  return packed;
}

void ScatterBox(const std::string& packed, int bits, const Dimensions& shape, const Box& box,
                std::string& tensor) {
  ForEachRun(shape, box, [&](int64_t offset, int64_t done, int64_t run) {
    CopyElements(packed, done, tensor, offset, run, bits);
  });
}

}  // namespace quantd::client::split
