#include "channel_pieces.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "elements.h"
#include "status_macros.h"

namespace quantd::client::split {
namespace {

// x as [outer, channels, inner]; each is a product of dimensions.
struct Extents {
  uint64_t outer = 1;
  uint64_t channels = 1;
  uint64_t inner = 1;
};

// Bytes of an element; 0 if a tensor of this type is not cut.
uint64_t ElementBytes(v1::DataType type) {
  return IsInputType(type) ? static_cast<uint64_t>(BitsOf(type)) / 8 : 0;
}

// nullopt unless the size matches the shape.
std::optional<Extents> ExtentsOf(v1::DataType type, absl::Span<const int64_t> shape, uint64_t size,
                                 std::optional<int64_t> axis) {
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t at = axis.value_or(-1);
  if (axis.has_value()) {
    if (at < -rank || at >= rank) return std::nullopt;
    if (at < 0) at += rank;
  }
  Extents extents;
  uint64_t bytes = ElementBytes(type);
  for (int64_t i = 0; i < rank; ++i) {
    const auto length = static_cast<uint64_t>(shape[static_cast<size_t>(i)]);
    if (static_cast<int64_t>(length) <= 0 || bytes > std::numeric_limits<uint64_t>::max() / length)
      return std::nullopt;
    bytes *= length;
    (i < at ? extents.outer : i == at ? extents.channels : extents.inner) *= length;
  }
  if (bytes == 0 || bytes != size) return std::nullopt;
  return extents;
}

// The shape of a piece, with as many dimensions as x, and the axis in the same place.
std::vector<int64_t> ShapeOf(size_t dimensions, std::optional<int64_t> axis, uint64_t outer,
                             uint64_t channels, uint64_t inner) {
  const auto rank = static_cast<int64_t>(dimensions);
  std::vector<int64_t> shape(dimensions, 1);
  if (!axis.has_value()) {
    if (rank > 0) shape.back() = static_cast<int64_t>(inner);
    return shape;
  }
  const int64_t at = *axis < 0 ? *axis + rank : *axis;
  if (at > 0) shape.front() = static_cast<int64_t>(outer);
  if (at + 1 < rank) shape.back() = static_cast<int64_t>(inner);
  shape[static_cast<size_t>(at)] = static_cast<int64_t>(channels);
  return shape;
}

}  // namespace

absl::Status ForEachChannelPiece(
    v1::DataType type, absl::Span<const int64_t> shape, absl::string_view data,
    std::optional<int64_t> axis, uint64_t most_bytes,
    absl::FunctionRef<absl::Status(absl::Span<const int64_t> shape, absl::string_view data)> send) {
  const std::optional<Extents> extents = ExtentsOf(type, shape, data.size(), axis);
  if (!extents.has_value() || data.size() <= most_bytes) return send(shape, data);
  const uint64_t element = ElementBytes(type);
  const uint64_t column = extents->channels * element;  // one value of each channel
  const uint64_t columns = std::max<uint64_t>(most_bytes / column, 1);
  // Whole rows of the outer dimension if one fits, otherwise a part of one, gathered channel by
  // channel.
  const uint64_t rows = std::max<uint64_t>(columns / extents->inner, 1);
  const uint64_t width = std::min(columns, extents->inner);
  const uint64_t row_bytes = extents->inner * column;
  std::string gathered;
  for (uint64_t row = 0; row < extents->outer; row += rows) {
    const uint64_t taken = std::min(rows, extents->outer - row);
    const absl::string_view whole = data.substr(row * row_bytes, taken * row_bytes);
    if (width == extents->inner) {
      QUANTD_RETURN_IF_ERROR(
          send(ShapeOf(shape.size(), axis, taken, extents->channels, width), whole));
      continue;
    }
    for (uint64_t at = 0; at < extents->inner; at += width) {
      const uint64_t part = std::min(width, extents->inner - at);
      gathered.clear();
      for (uint64_t channel = 0; channel < extents->channels; ++channel) {
        const absl::string_view run =
            whole.substr((channel * extents->inner + at) * element, part * element);
        gathered.append(run.data(), run.size());
      }
      QUANTD_RETURN_IF_ERROR(
          send(ShapeOf(shape.size(), axis, 1, extents->channels, part), gathered));
    }
  }
  return absl::OkStatus();
}

}  // namespace quantd::client::split
