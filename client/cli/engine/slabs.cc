#include "engine/slabs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace quantd::cli {
namespace {

int64_t Blocks(int64_t length, int64_t block) { return length == 0 ? 0 : (length - 1) / block + 1; }

// What all slabs of a tensor are cut with.
struct Cutter {
  const Shape& shape;
  const Shape& block_shape;
  const SlabLimits& limits;
  const bool whole_blocks;
  absl::FunctionRef<absl::Status(const Slab&)> visit;

  // Cuts along dimension `d` what begins at `at`; each dimension before it has one index there.
  absl::Status Cut(size_t d, const Slab& at) const {
    int64_t inner = 1, inner_scales = 1;
    for (size_t i = d + 1; i < shape.size(); ++i) {
      inner *= shape[i];
      inner_scales *= Blocks(shape[i], block_shape[i]);
    }
    const int64_t block = block_shape[d];
    const int64_t fit = std::min(limits.elements / inner, limits.scales / inner_scales * block);
    int64_t rows = fit >= block ? fit / block * block : fit;
    if (rows < block && whole_blocks) {
      rows = limits.scales >= inner_scales ? block : 0;
      if (rows == 0 && block > 1) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "its ", inner_scales, " scales to a row need more memory than quantctl takes; ",
            "choose larger blocks, or blocks along the last dimension"));
      }
    }
    for (int64_t row = 0; row < shape[d];) {
      Slab slab = at;
      slab.first_element += row * inner;
      slab.first_scale += row / block * inner_scales;
      if (rows == 0) {
        if (absl::Status status = Cut(d + 1, slab); !status.ok()) return status;
        ++row;
        continue;
      }
      // Within a block no further than to its end.
      const int64_t left = rows >= block ? shape[d] - row : block - row % block;
      const int64_t taken = std::min({rows, left, shape[d] - row});
      slab.elements = taken * inner;
      slab.scales = Blocks(taken, block) * inner_scales;
      slab.shape.assign(shape.begin() + d, shape.end());
      slab.block_shape.assign(block_shape.begin() + d, block_shape.end());
      slab.shape[0] = taken;
      for (size_t i = 0; i < slab.shape.size(); ++i) {
        slab.scale_shape.push_back(Blocks(slab.shape[i], slab.block_shape[i]));
      }
      if (absl::Status status = visit(slab); !status.ok()) return status;
      row += taken;
    }
    return absl::OkStatus();
  }
};

}  // namespace

absl::Status ForEachSlab(const Shape& shape, const Shape& block_shape, const SlabLimits& limits,
                         bool whole_blocks,
                         absl::FunctionRef<absl::Status(const Slab& slab)> visit) {
  for (const int64_t length : shape) {
    if (length == 0) return absl::OkStatus();
  }
  if (shape.empty()) return visit(Slab());
  return Cutter{shape, block_shape, limits, whole_blocks, visit}.Cut(0, Slab());
}

std::optional<Shape> BlocksOfScales(const Shape& shape, const Shape& scale_shape,
                                    const Granularity& granularity) {
  Shape blocks = shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const bool along_axis = granularity.block_size > 0 || granularity.axis.has_value() ||
                          (scale_shape.size() == 1 && granularity.block_shape.empty());
  int64_t axis = granularity.axis.value_or(1);
  if (axis < 0) axis += rank;
  if (along_axis && (axis < 0 || axis >= rank)) return std::nullopt;
  if (!granularity.block_shape.empty()) {
    if (granularity.block_shape.size() != shape.size()) return std::nullopt;
    for (int64_t d = 0; d < rank; ++d) {
      if (granularity.block_shape[d] != -1) blocks[d] = granularity.block_shape[d];
    }
  } else if (granularity.block_size > 0) {
    std::fill(blocks.begin(), blocks.end(), 1);
    blocks[axis] = granularity.block_size;
  } else if (along_axis) {
    blocks[axis] = 1;
  } else if (scale_shape.size() == shape.size()) {
    for (int64_t d = 0; d < rank; ++d) {
      if (scale_shape[d] < 1 || shape[d] % scale_shape[d] != 0) return std::nullopt;
      blocks[d] = shape[d] / scale_shape[d];
    }
  }
  int64_t scales = 1, given = 1;
  for (int64_t d = 0; d < rank; ++d) {
    if (blocks[d] < 1 || shape[d] < 1) return std::nullopt;
    blocks[d] = std::min(blocks[d], shape[d]);
    scales *= Blocks(shape[d], blocks[d]);
  }
  for (const int64_t length : scale_shape) given *= length;
  if (scales != given) return std::nullopt;
  return blocks;
}

absl::Span<const uint8_t> TakePart(absl::Span<const uint8_t> packed, int bits, int64_t first,
                                   int64_t count, std::vector<uint8_t>* shifted) {
  const int64_t begin = first * bits / 8, size = (count * bits + 7) / 8;
  const auto shift = static_cast<int>(first * bits % 8);
  if (shift == 0 && count * bits % 8 == 0) return packed.subspan(begin, size);
  shifted->resize(size);
  for (int64_t i = 0; i < size; ++i) {
    const size_t next = begin + i + 1;
    const int high = next < packed.size() ? packed[next] << (8 - shift) : 0;  // shift 0: cut off
    (*shifted)[i] = static_cast<uint8_t>(packed[begin + i] >> shift | high);
  }
  if (const int64_t used = count * bits % 8; used != 0) shifted->back() &= (1 << used) - 1;
  return *shifted;
}

absl::Span<const uint8_t> BytesOf(const TensorView& tensor) {
  return tensor.bytes.chunk_count() == 0 ? absl::Span<const uint8_t>() : tensor.bytes.chunk(0);
}

TensorView SlabPart::OfElements(const TensorView& whole, const Slab& slab) {
  return {whole.data_type, slab.shape,
          ByteChunks(TakePart(BytesOf(whole), Info(whole.data_type).bits, slab.first_element,
                              slab.elements, &shifted_))};
}

TensorView SlabPart::OfScales(const TensorView& whole, const Slab& slab) {
  return {whole.data_type, slab.scale_shape,
          ByteChunks(TakePart(BytesOf(whole), Info(whole.data_type).bits, slab.first_scale,
                              slab.scales, &shifted_))};
}

PartToFill::PartToFill(absl::Span<uint8_t> packed, int bits, int64_t first, int64_t count)
    : packed_(packed.subspan(first * bits / 8)), shift_(static_cast<int>(first * bits % 8)) {
  const size_t size = (count * bits + 7) / 8;
  if (shift_ == 0) {
    bytes_ = packed_.subspan(0, size);
  } else {
    own_.resize(size);
    bytes_ = absl::MakeSpan(own_);
  }
}

void PartToFill::Finish() {
  for (size_t i = 0; i < own_.size(); ++i) {
    packed_[i] |= static_cast<uint8_t>(own_[i] << shift_);
    if (i + 1 < packed_.size()) packed_[i + 1] |= own_[i] >> (8 - shift_);
  }
}

}  // namespace quantd::cli
