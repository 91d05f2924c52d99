#include "plan/granularity.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "quantd/shape.h"

namespace quantd {
namespace {

constexpr int64_t kWhole = -1;

// Each dimension of x cut into blocks of `block_of(dimension)` elements (kWhole: not cut).
template <typename BlockOf>
Blocks Cut(const Shape& x_shape, const BlockOf& block_of) {
  Blocks blocks;
  for (size_t i = 0; i < x_shape.size(); ++i) {
    const int64_t length = x_shape[i], block = block_of(i);
    const int64_t most = std::max<int64_t>(length, 1);
    blocks.lengths.push_back(block == kWhole ? most : std::clamp<int64_t>(block, 1, most));
    blocks.counts.push_back(block == kWhole ? 1 : length == 0 ? 0 : (length - 1) / block + 1);
  }
  return blocks;
}

// Blocks along one dimension: those of `on_axis` elements there, and of `elsewhere`.
Blocks AlongAxis(const Shape& x_shape, size_t axis, int64_t on_axis, int64_t elsewhere) {
  return Cut(x_shape, [&](size_t i) { return i == axis ? on_axis : elsewhere; });
}

Blocks PerTensor(const Shape& x_shape) {
  return Cut(x_shape, [](size_t) { return kWhole; });
}

absl::StatusOr<size_t> ResolveAxis(const Granularity& granularity, const Shape& x_shape) {
  const int64_t rank = static_cast<int64_t>(x_shape.size());
  const int64_t axis = granularity.axis.value_or(1);
  if (axis >= -rank && axis < rank) return static_cast<size_t>(axis < 0 ? axis + rank : axis);
  const absl::string_view origin = granularity.axis.has_value() ? "" : " (the default)";
  if (rank == 0) {
    return FieldError("axis", absl::StrCat("axis is ", axis, origin, ", x has no dimensions"));
  }
  return FieldError("axis", absl::StrCat("axis is ", axis, origin, ", x has ", rank,
                                         rank == 1 ? " dimension" : " dimensions", ": ", -rank,
                                         " to ", rank - 1, " are possible"));
}

// Checks that apply to every operation, before any scale is read.
absl::Status CheckGranularity(const Granularity& granularity, const Shape& x_shape) {
  if (granularity.block_size < 0) {
    return FieldError("block_size", absl::StrCat("block_size is ", granularity.block_size,
                                                 ", blocks have 1 element or more"));
  }
  const Shape& lengths = granularity.block_shape;
  if (lengths.empty()) return absl::OkStatus();
  if (granularity.axis.has_value()) {
    return FieldError("block_shape",
                      absl::StrCat("block_shape is ", ShapeString(lengths), " and axis is ",
                                   *granularity.axis, ", only one of them can be given"));
  }
  if (granularity.block_size != 0) {
    return FieldError("block_shape",
                      absl::StrCat("block_shape is ", ShapeString(lengths), " and block_size is ",
                                   granularity.block_size, ", only one of them can be given"));
  }
  if (lengths.size() != x_shape.size()) {
    return FieldError("block_shape",
                      absl::StrCat("block_shape has ", lengths.size(), " lengths, x has ",
                                   x_shape.size(), " dimensions"));
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 1 && lengths[i] != kWhole) {
      return FieldError("block_shape", absl::StrCat("block_shape[", i, "] is ", lengths[i],
                                                    ", a length is positive, or -1 for all ",
                                                    x_shape[i], " of dimension ", i));
    }
  }
  return absl::OkStatus();
}

// A scale of x's rank in which every dimension divides that of x.
absl::StatusOr<Blocks> Groups(const Shape& x_shape, const Shape& scale_shape) {
  if (scale_shape.size() != x_shape.size()) {
    return FieldError(
        "scale", absl::StrCat("scale has ", scale_shape.size(), " dimensions (shape ",
                              ShapeString(scale_shape), "), x has ", x_shape.size(), " (shape ",
                              ShapeString(x_shape), "): it takes none, one, or as many as x"));
  }
  Blocks blocks;
  for (size_t i = 0; i < x_shape.size(); ++i) {
    const int64_t length = x_shape[i];
    const int64_t count = scale_shape[i];
    if (count == 0 ? length != 0 : length % count != 0) {
      return FieldError("scale", absl::StrCat("scale has length ", count, " in dimension ", i,
                                              ", which does not divide the ", length, " of x"));
    }
    blocks.lengths.push_back(count == 0 ? 1 : std::max<int64_t>(length / count, 1));
    blocks.counts.push_back(count);
  }
  return blocks;
}

}  // namespace

absl::StatusOr<Blocks> BlocksOfScale(const Granularity& granularity, const Shape& x_shape,
                                     const Shape& scale_shape) {
  for (const auto& [shape, field] : {std::pair(&x_shape, "x"), std::pair(&scale_shape, "scale")}) {
    const absl::StatusOr<int64_t> count = ElementCount(*shape, field);
    if (!count.ok()) return count.status();
  }
  if (!granularity.block_shape.empty() || granularity.block_size != 0) {
    absl::StatusOr<RequestedBlocks> requested = BlocksOfRequest(granularity, x_shape);
    if (!requested.ok()) return requested.status();
    if (scale_shape == requested->blocks.counts) return std::move(requested->blocks);
    const std::string cause =
        granularity.block_shape.empty()
            ? absl::StrCat("block_size ", granularity.block_size, " along axis ",
                           *ResolveAxis(granularity, x_shape))
            : absl::StrCat("block_shape ", ShapeString(granularity.block_shape));
    return FieldError("scale", absl::StrCat("scale has shape ", ShapeString(scale_shape), ", ",
                                            cause, " of x ", ShapeString(x_shape), " needs ",
                                            ShapeString(requested->blocks.counts)));
  }
  if (scale_shape.empty() || (scale_shape.size() == 1 && scale_shape[0] == 1)) {
    return PerTensor(x_shape);
  }
  if (scale_shape.size() > 1) return Groups(x_shape, scale_shape);
  absl::StatusOr<size_t> axis = ResolveAxis(granularity, x_shape);
  if (!axis.ok()) return axis.status();
  if (scale_shape[0] != x_shape[*axis]) {
    return FieldError("scale", absl::StrCat("scale has ", scale_shape[0], " elements, x has ",
                                            x_shape[*axis], " along axis ", *axis));
  }
  return AlongAxis(x_shape, *axis, 1, kWhole);
}

absl::StatusOr<RequestedBlocks> BlocksOfRequest(const Granularity& granularity,
                                                const Shape& x_shape) {
  if (absl::Status status = CheckGranularity(granularity, x_shape); !status.ok()) return status;
  RequestedBlocks requested;
  if (!granularity.block_shape.empty()) {
    requested.blocks = Cut(x_shape, [&](size_t i) { return granularity.block_shape[i]; });
    requested.scale_shape = requested.blocks.counts;
    return requested;
  }
  if (granularity.block_size == 0 && !granularity.axis.has_value()) {
    requested.blocks = PerTensor(x_shape);
    return requested;
  }
  absl::StatusOr<size_t> axis = ResolveAxis(granularity, x_shape);
  if (!axis.ok()) return axis.status();
  if (granularity.block_size > 0) {
    requested.blocks = AlongAxis(x_shape, *axis, granularity.block_size, 1);
    requested.scale_shape = requested.blocks.counts;
  } else {
    requested.blocks = AlongAxis(x_shape, *axis, 1, kWhole);
    requested.scale_shape = {x_shape[*axis]};
  }
  return requested;
}

BlockLayout MakeLayout(absl::Span<const int64_t> shape, const Blocks& blocks) {
  BlockLayout layout;
  layout.scale_count = 1;
  for (int64_t count : blocks.counts) layout.scale_count *= count;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return layout;

  // From the outermost dimension: its stride is the number of scales inside of one block row.
  int64_t stride = layout.scale_count;
  for (size_t i = 0; i < shape.size(); ++i) {
    stride /= blocks.counts[i];
    if (shape[i] == 1) continue;
    BlockLayout::Dimension next = {shape[i], blocks.lengths[i], stride};
    if (!layout.dimensions.empty()) {
      const BlockLayout::Dimension& last = layout.dimensions.back();
      if (next.block == next.length) {
        next = {last.length * next.length, last.block * next.length, last.scale_stride};
        layout.dimensions.pop_back();
      } else if (last.block == 1 && next.length % next.block == 0) {
        next = {last.length * next.length, next.block, next.scale_stride};
        layout.dimensions.pop_back();
      }
    }
    layout.dimensions.push_back(next);
  }
  if (layout.dimensions.empty()) layout.dimensions.push_back({1, 1, 1});
  return layout;
}

}  // namespace quantd
