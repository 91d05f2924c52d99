#include "grid.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "elements.h"
#include "quantd/client/status.h"
#include "status_macros.h"

namespace quantd::client::split {
namespace {

int64_t CeilDivide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

std::string ShapeString(const Dimensions& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::StatusOr<size_t> ResolveAxis(int64_t axis, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) {
    return FieldError("axis", absl::StrCat("axis is ", axis, ", x has ", r, " dimensions: ", -r,
                                           " to ", r - 1, " are possible"));
  }
  return static_cast<size_t>(axis < 0 ? axis + r : axis);
}

Grid MakeGrid(const Dimensions& shape, Dimensions block) {
  Grid grid;
  grid.shape = shape;
  grid.block = std::move(block);
  for (size_t d = 0; d < shape.size(); ++d) {
    grid.block[d] = std::min(std::max<int64_t>(grid.block[d], 1), shape[d]);
    grid.counts.push_back(CeilDivide(shape[d], grid.block[d]));
  }
  grid.scale_shape = grid.counts;
  grid.scales = Product(grid.counts);
  return grid;
}

Grid OneScale(const Dimensions& shape) {
  Grid grid = MakeGrid(shape, shape);
  grid.scale_shape.clear();
  return grid;
}

absl::StatusOr<Grid> AxisGrid(const Dimensions& shape, int64_t axis) {
  QUANTD_ASSIGN_OR_RETURN(const size_t dimension, ResolveAxis(axis, shape.size()));
  Dimensions block = shape;
  block[dimension] = 1;
  Grid grid = MakeGrid(shape, std::move(block));
  grid.scale_shape = {shape[dimension]};
  return grid;
}

bool SaysBlocks(const Granularity& granularity) {
  return granularity.block_size != 0 || !granularity.block_shape.empty();
}

// REQUIRES: SaysBlocks(granularity).
absl::StatusOr<Grid> BlockedGrid(const Dimensions& shape, const Granularity& granularity) {
  Dimensions block = granularity.block_shape;
  if (!block.empty() && (granularity.axis.has_value() || granularity.block_size != 0)) {
    return FieldError("block_shape",
                      absl::StrCat("block_shape is ", ShapeString(block), " and ",
                                   granularity.axis.has_value() ? "axis" : "block_size",
                                   " is given, only one of them can be"));
  }
  if (granularity.block_size < 0) {
    return FieldError("block_size", absl::StrCat("block_size is ", granularity.block_size,
                                                 ", blocks have 1 element or more"));
  }
  if (granularity.block_size > 0) {
    QUANTD_ASSIGN_OR_RETURN(const size_t axis,
                            ResolveAxis(granularity.axis.value_or(1), shape.size()));
    block.assign(shape.size(), 1);
    block[axis] = granularity.block_size;
  }
  if (block.size() != shape.size()) {
    return FieldError("block_shape", absl::StrCat("block_shape has ", block.size(),
                                                  " lengths, x has ", shape.size(), " dimensions"));
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (block[d] == -1) {
      block[d] = shape[d];
    } else if (block[d] < 1) {
      return FieldError("block_shape", absl::StrCat("block_shape[", d, "] is ", block[d],
                                                    ", a length is positive, or -1"));
    }
  }
  return MakeGrid(shape, std::move(block));
}

// The end of a box that starts at `begin` along a dimension where boxes have length `extent`: whole
// blocks, or a part of one block.
int64_t BoxEnd(int64_t begin, int64_t extent, int64_t block, int64_t length) {
  const int64_t end = std::min(begin + extent, length);
  if (extent >= length || extent % block == 0) return end;
  return std::min(end, (begin / block + 1) * block);
}

}  // namespace

absl::Status FieldError(absl::string_view field, absl::string_view message) {
  v1::ItemError error;
  error.set_code(static_cast<int>(absl::StatusCode::kInvalidArgument));
  error.set_message(std::string(message));
  v1::FieldViolation* const violation = error.add_field_violations();
  violation->set_field(std::string(field));
  violation->set_description(std::string(message));
  return FromItemError(error);
}

absl::StatusOr<int64_t> CheckTensor(const Tensor& tensor, absl::string_view field) {
  const int bits = BitsOf(tensor.data_type);
  if (bits == 0) {
    return FieldError(
        field, absl::StrCat(field, " is of type ", tensor.data_type, ", which does not exist"));
  }
  int64_t elements = 1;
  for (const int64_t length : tensor.shape) {
    // A tensor with bytes has no length 0, and fewer than 2^40 elements per dimension.
    if (length < 1 || __builtin_mul_overflow(elements, length, &elements) ||
        elements > INT64_MAX / 32) {
      elements = -1;
      break;
    }
  }
  if (elements > 0 && BytesOf(elements, bits) == static_cast<int64_t>(tensor.data.size())) {
    return elements;
  }
  return FieldError(
      field, absl::StrCat(field, " has ", tensor.data.size(), " bytes, ",
                          v1::DataType_Name(tensor.data_type), " of shape ",
                          ShapeString(tensor.shape), " takes ",
                          elements < 0 ? "another number" : absl::StrCat(BytesOf(elements, bits))));
}

Box Grid::BlocksOf(const Box& box) const {
  Box blocks;
  for (size_t d = 0; d < shape.size(); ++d) {
    blocks.begin.push_back(box.begin[d] / block[d]);
    blocks.size.push_back(CeilDivide(box.begin[d] + box.size[d], block[d]) - blocks.begin[d]);
  }
  return blocks;
}

Dimensions Grid::PieceBlockShape(const Box& box) const {
  Dimensions result;
  for (size_t d = 0; d < shape.size(); ++d) {
    result.push_back(box.size[d] <= block[d] ? -1 : block[d]);
  }
  return result;
}

Box Grid::BlockAt(int64_t number) const {
  Box box{Dimensions(shape.size()), Dimensions(shape.size())};
  for (size_t d = shape.size(); d-- > 0;) {
    box.begin[d] = number % counts[d] * block[d];
    box.size[d] = std::min(block[d], shape[d] - box.begin[d]);
    number /= counts[d];
  }
  return box;
}

absl::StatusOr<Grid> DynamicGrid(const Dimensions& shape, const Granularity& granularity) {
  if (SaysBlocks(granularity)) return BlockedGrid(shape, granularity);
  if (granularity.axis.has_value()) return AxisGrid(shape, *granularity.axis);
  return OneScale(shape);
}

absl::StatusOr<Grid> ScaleGrid(const Dimensions& shape, const Dimensions& scale_shape,
                               const Granularity& granularity) {
  absl::StatusOr<Grid> grid = OneScale(shape);
  const bool one = !SaysBlocks(granularity) &&
                   (scale_shape.empty() || (scale_shape.size() == 1 && scale_shape[0] == 1));
  if (SaysBlocks(granularity)) {
    grid = BlockedGrid(shape, granularity);
  } else if (!one && scale_shape.size() == 1) {
    grid = AxisGrid(shape, granularity.axis.value_or(1));
  } else if (!one && scale_shape.size() == shape.size()) {
    Dimensions block;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (scale_shape[d] < 1 || shape[d] % scale_shape[d] != 0) {
        return FieldError("scale",
                          absl::StrCat("scale has length ", scale_shape[d], " in dimension ", d,
                                       ", which does not divide the ", shape[d], " of x"));
      }
      block.push_back(shape[d] / scale_shape[d]);
    }
    grid = MakeGrid(shape, std::move(block));
  }
  if (!grid.ok()) return grid;
  if (!one && grid->scale_shape != scale_shape) {
    return FieldError("scale",
                      absl::StrCat("scale has shape ", ShapeString(scale_shape), ", x ",
                                   ShapeString(shape), " needs ", ShapeString(grid->scale_shape)));
  }
  return grid;
}

std::optional<std::vector<Box>> CutIntoBoxes(const Grid& grid, Cut cut,
                                             const std::function<bool(int64_t, int64_t)>& fits) {
  const size_t rank = grid.shape.size();
  const auto fit = [&](const Dimensions& extent) {
    int64_t scales = 1;
    for (size_t d = 0; d < rank; ++d) {
      // A box that begins inside of a block may touch one more; CutIntoBoxes makes no such boxes.
      scales *= CeilDivide(extent[d], grid.block[d]);
    }
    return fits(Product(extent), scales);
  };
  Dimensions extent =
      cut == Cut::kBetweenBlocks ? grid.block : Dimensions(rank, 1);  // the smallest box
  if (!fit(extent)) return std::nullopt;
  for (size_t d = rank; d-- > 0;) {
    const int64_t step = extent[d];
    int64_t good = 1, bad = CeilDivide(grid.shape[d], step) + 1;
    while (bad - good > 1) {
      const int64_t middle = good + (bad - good) / 2;
      extent[d] = std::min(middle * step, grid.shape[d]);
      (fit(extent) ? good : bad) = middle;
    }
    extent[d] = std::min(good * step, grid.shape[d]);
    if (extent[d] == grid.shape[d]) continue;
    if (extent[d] > grid.block[d]) extent[d] -= extent[d] % grid.block[d];
    break;
  }

  std::vector<Box> boxes;
  Box box{Dimensions(rank, 0), Dimensions(rank, 0)};
  for (;;) {
    for (size_t d = 0; d < rank; ++d) {
      box.size[d] = BoxEnd(box.begin[d], extent[d], grid.block[d], grid.shape[d]) - box.begin[d];
    }
    boxes.push_back(box);
    size_t d = rank;
    for (;;) {
      if (d == 0) return boxes;
      --d;
      box.begin[d] += box.size[d];
      if (box.begin[d] < grid.shape[d]) break;
      box.begin[d] = 0;
    }
  }
}

}  // namespace quantd::client::split
