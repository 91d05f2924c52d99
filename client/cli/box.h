// Boxes of a tensor, and copying them in and out of it.
//
// A box is an index range along each dimension. A piece of a tensor that is sent on its own is a
// box; so are the scales that belong to it. Elements may be packed (2 and 4 bits): then offsets are
// counted in bits, lowest bits of a byte first.
#ifndef QUANTD_CLI_BOX_H_
#define QUANTD_CLI_BOX_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "quantd/shape.h"

namespace quantd::cli {

struct Box {
  Shape begin;
  Shape size;
};

Box WholeBox(absl::Span<const int64_t> shape);

// Product of the lengths. REQUIRES: it fits (the shape was checked by ElementCount).
int64_t Product(absl::Span<const int64_t> shape);

// Distance in elements from one index to the next along each dimension.
Shape RowMajorStrides(absl::Span<const int64_t> shape);
Shape ColumnMajorStrides(absl::Span<const int64_t> shape);

// The elements of `box`, packed and row-major, of a tensor whose elements are `bits` wide and lie
// at `strides`. REQUIRES: the box lies in the tensor; bits is 2, 4, 8, 16, 32 or 64.
std::string GatherBox(absl::Span<const uint8_t> tensor, int bits, absl::Span<const int64_t> strides,
                      const Box& box);

// The opposite, into a row-major tensor of `shape`. `packed` has the bytes that GatherBox would
// give. Writes no bit outside of the box, but whole bytes at its edges: two boxes that share a byte
// must not be written at once.
void ScatterBox(absl::Span<const uint8_t> packed, int bits, absl::Span<const int64_t> shape,
                const Box& box, absl::Span<uint8_t> tensor);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_BOX_H_
