// Cutting a tensor into slabs: parts whose elements lie together in memory, and whose scales do.
//
// A slab is some rows of one dimension and all of the dimensions inside of it. It holds whole
// blocks along that dimension, or lies within one; so the operation on it is the operation on the
// whole, with its own scales: every element is computed from itself and the scale of its block
// alone.
#ifndef QUANTD_CLI_ENGINE_SLABS_H_
#define QUANTD_CLI_ENGINE_SLABS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/engine.h"
#include "quantd/parameters.h"
#include "quantd/shape.h"

namespace quantd::cli {

struct Slab {
  Shape shape;        // of the part of x
  Shape block_shape;  // as in a request
  Shape scale_shape;
  int64_t first_element = 0, first_scale = 0;  // where it begins in the whole
  int64_t elements = 1, scales = 1;
};

// Calls visit for each slab of a tensor with these blocks (one length >= 1 a dimension), in order,
// until one fails. With `whole_blocks` a slab never lies within a block: the one that holds the
// smallest number of blocks may then have more elements than the limit, and where it has more
// scales: RESOURCE_EXHAUSTED.
absl::Status ForEachSlab(const Shape& shape, const Shape& block_shape, const SlabLimits& limits,
                         bool whole_blocks,
                         absl::FunctionRef<absl::Status(const Slab& slab)> visit);

// The block of each dimension, where the request's scales say it; nothing when they do not fit it.
std::optional<Shape> BlocksOfScales(const Shape& shape, const Shape& scale_shape,
                                    const Granularity& granularity);

// Elements [first, first + count) of packed ones. Copied to `shifted` where they begin or end
// inside of a byte.
absl::Span<const uint8_t> TakePart(absl::Span<const uint8_t> packed, int bits, int64_t first,
                                   int64_t count, std::vector<uint8_t>* shifted);

// The bytes of a tensor whose bytes lie together.
absl::Span<const uint8_t> BytesOf(const TensorView& tensor);

// A slab's part of a tensor, and the copy that its bytes may need.
class SlabPart {
 public:
  TensorView OfElements(const TensorView& whole, const Slab& slab);
  TensorView OfScales(const TensorView& whole, const Slab& slab);

 private:
  std::vector<uint8_t> shifted_;
};

// A slab's part of a request that brings its scales.
template <typename Parameters>
class SlabRequest {
 public:
  SlabRequest(const Parameters& whole, const Slab& slab) : parameters(whole) {
    parameters.x = x_.OfElements(whole.x, slab);
    parameters.scale = scale_.OfScales(whole.scale, slab);
    if (whole.zero_point.has_value()) {
      parameters.zero_point = zero_point_.OfScales(*whole.zero_point, slab);
    }
    parameters.granularity = {.block_shape = slab.block_shape};
  }
  Parameters parameters;

 private:
  SlabPart x_, scale_, zero_point_;
};

// A place for elements [first, first + count) of packed ones, which are zero.
class PartToFill {
 public:
  PartToFill(absl::Span<uint8_t> packed, int bits, int64_t first, int64_t count);
  absl::Span<uint8_t> bytes() { return bytes_; }
  // Once bytes() are filled.
  void Finish();

 private:
  absl::Span<uint8_t> bytes_, packed_;
  int shift_;
  std::vector<uint8_t> own_;  // when they begin inside of a byte
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_ENGINE_SLABS_H_
