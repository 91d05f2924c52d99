#include "boxes.h"

#include <cstring>
#include <functional>
#include <numeric>

namespace quantd::client::split {
namespace {

// Elements of 2 or 4 bits.
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
  from *= bits;
  to *= bits;
  while (count > 0 && to % 8 != 0) copy_one();
  const int64_t bytes = count * bits / 8;
  const int shift = static_cast<int>(from % 8);
  if (shift == 0) {
    if (bytes > 0) std::memcpy(destination + to / 8, source + from / 8, static_cast<size_t>(bytes));
  } else {
    for (int64_t i = 0; i < bytes; ++i) {
      const uint8_t* const pair = source + from / 8 + i;
      destination[to / 8 + i] = static_cast<uint8_t>(pair[0] >> shift | pair[1] << (8 - shift));
    }
  }
  from += bytes * 8;
  to += bytes * 8;
  count -= bytes * 8 / bits;
  while (count > 0) copy_one();
}

// Visits the elements of `box` in runs that lie together in a tensor of `shape`:
// visit(offset in the tensor, offset in the box, elements).
void ForEachRun(const Dimensions& shape, const Box& box,
                const std::function<void(int64_t, int64_t, int64_t)>& visit) {
  const int64_t elements = Product(box.size);
  if (elements == 0) return;
  // Dimensions behind `split` are whole, so that `run` elements lie together.
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
  if (bits >= 8) return elements * (bits / 8);
  const int64_t per_byte = 8 / bits;
  return elements / per_byte + (elements % per_byte != 0);
}

void CopyElements(const std::string& source, int64_t from, std::string& destination, int64_t to,
                  int64_t count, int bits) {
  if (count <= 0) return;
  if (bits < 8) {
    CopyPacked(reinterpret_cast<const uint8_t*>(source.data()), from,
               reinterpret_cast<uint8_t*>(destination.data()), to, count, bits);
    return;
  }
  const int64_t bytes = bits / 8;
  std::memcpy(destination.data() + to * bytes, source.data() + from * bytes,
              static_cast<size_t>(count * bytes));
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
