// Boxes of a tensor, and copying them out of it and into it.
//
// A box is an index range along each dimension. A piece of a tensor that is sent separately is a
// box; so are its scales. Offsets are in bits, lowest bits of a byte first, because elements may be
// narrower than a byte, and may cross the end of a byte.
#ifndef QUANTD_CLIENT_CPP_SPLIT_BOXES_H_
#define QUANTD_CLIENT_CPP_SPLIT_BOXES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace quantd::client::split {

using Dimensions = std::vector<int64_t>;

struct Box {
  Dimensions begin;
  Dimensions size;
};

// Product of the lengths. REQUIRES: it fits.
int64_t Product(const Dimensions& lengths);

// The distance in elements from one index to the next along each dimension.
Dimensions Strides(const Dimensions& shape);

// Bytes of packed elements; the last byte may have unused bits. REQUIRES: they fit.
int64_t BytesOf(int64_t elements, int bits);

// The elements of `box`, packed and row-major, from a row-major tensor of `shape` whose elements
// have `bits` bits. REQUIRES: the box is in the tensor.
std::string GatherBox(const std::string& tensor, int bits, const Dimensions& shape, const Box& box);

// The inverse. `packed` has at least the bytes that GatherBox returns. Changes no bit outside of
// the box, but writes whole bytes at its edges: two boxes that share a byte must not be written at
// the same time.
void ScatterBox(const std::string& packed, int bits, const Dimensions& shape, const Box& box,
                std::string& tensor);

// Copies `count` elements from element `from` of source to element `to` of destination.
void CopyElements(const std::string& source, int64_t from, std::string& destination, int64_t to,
                  int64_t count, int bits);

}  // namespace quantd::client::split

#endif  // QUANTD_CLIENT_CPP_SPLIT_BOXES_H_
