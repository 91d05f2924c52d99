#include "server/operations/memory.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "quantd/shape.h"
#include "server/operations/scratch_bytes.h"
#include "server/wire/response_layout.h"

namespace quantd::operations {
namespace {

using wire::ResponseLayout;

// The most elements in this number of bytes.
uint64_t ElementsIn(const TensorView& tensor) {
  return tensor.bytes.size() * 8 / static_cast<uint64_t>(Info(tensor.data_type).bits);
}

// The layout of y if x matches its shape; otherwise the plan refuses the request.
std::optional<TensorLayout> LayoutOf(const TensorView& x, DataType output_type) {
  const absl::StatusOr<int64_t> elements = ElementCount(x.shape, "x.shape");
  if (!elements.ok() || ByteSize(x.data_type, *elements) != x.bytes.size()) return std::nullopt;
  return TensorLayout{output_type, x.shape, *elements, ByteSize(output_type, *elements)};
}

DataType Or(DataType type, DataType otherwise) {
  return type == DataType::kUnspecified ? otherwise : type;
}

// Scales made by DynamicQuantize: at most as many as elements, or one if there are none.
uint64_t ScaleCount(const Shape& shape, const Granularity& granularity) {
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = granularity.axis.value_or(1);
  if (axis < 0) axis += rank;
  uint64_t count = 1;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t block = shape[i];  // the whole dimension
    if (!granularity.block_shape.empty()) {
      if (granularity.block_shape.size() != shape.size()) return 1;  // the plan refuses it
      if (granularity.block_shape[i] > 0) block = granularity.block_shape[i];
    } else if (granularity.block_size > 0) {
      block = i == axis ? granularity.block_size : 1;
    } else if (granularity.axis.has_value()) {
      if (i == axis) block = 1;
    }
    block = std::max<int64_t>(block, 1);
    count *= std::max<uint64_t>((static_cast<uint64_t>(shape[i]) + block - 1) / block, 1);
  }
  return count;
}

// A plan makes up to three columns of 4 bytes from elements of at least one byte.
constexpr uint64_t kColumns = 12;

// What is allocated in addition to the response, for this number of computed scales, and given
// parameters.
uint64_t Beside(uint64_t scales, uint64_t parameter_bytes) {
  return ScratchBytes(scales) + kColumns * parameter_bytes;
}

// The output type, if the plan accepts the request.
DataType OutputType(const QuantizeParameters& request) {
  const bool is_free = request.zero_point_order == ZeroPointOrder::kBeforeRounding;
  if (is_free && request.output_type != DataType::kUnspecified) return request.output_type;
  if (request.zero_point.has_value() && request.zero_point->data_type != DataType::kInt32) {
    return request.zero_point->data_type;
  }
  return Or(request.output_type, DataType::kUint8);
}

// For each kind of request: the largest response (false: the plan refuses it), and what is
// allocated in addition.

bool Describe(const QuantizeParameters& request, ResponseLayout& layout) {
  const std::optional<TensorLayout> y = LayoutOf(request.x, OutputType(request));
  if (!y.has_value()) return false;
  layout.y = *y;
  layout.report_error = request.report_error;
  return true;
}

template <typename Parameters>
  requires requires(const Parameters& request) { request.scale; }
uint64_t Beside(const Parameters& request, const ResponseLayout& /*layout*/) {
  const uint64_t zero_points = request.zero_point ? ElementsIn(*request.zero_point) : 0;
  const uint64_t scales = ElementsIn(request.scale);
  return Beside(scales, scales + zero_points);
}

bool Describe(const DequantizeParameters& request, ResponseLayout& layout) {
  DataType type = Or(request.output_type, request.scale.data_type);
  if (Info(type).kind != DataTypeKind::kFloat) type = DataType::kFloat;
  const std::optional<TensorLayout> y = LayoutOf(request.x, type);
  if (!y.has_value()) return false;
  layout.y = *y;
  return true;
}

bool Describe(const DynamicQuantizeParameters& request, ResponseLayout& layout) {
  const DataType type = Or(request.output_type, DataType::kUint8);
  const std::optional<TensorLayout> y = LayoutOf(request.x, type);
  if (!y.has_value()) return false;
  layout.y = *y;
  layout.report_error = request.report_error;
  const uint64_t count = ScaleCount(request.x.shape, request.granularity);
  const auto scales = static_cast<int64_t>(
      std::min<uint64_t>(count, std::max<uint64_t>(static_cast<uint64_t>(y->elements), 1 << 16)));
  const Shape shape(request.x.shape.size(), scales);  // no dimension is longer
  layout.y_scale = {DataType::kFloat, shape, scales, ByteSize(DataType::kFloat, scales)};
  layout.y_zero_point = {type, shape, scales, ByteSize(type, scales)};
  layout.y_tensor_scale = {DataType::kFloat, Shape(), 1, 4};
  return true;
}

uint64_t Beside(const DynamicQuantizeParameters& /*request*/, const ResponseLayout& layout) {
  return Beside(static_cast<uint64_t>(layout.y_scale->elements), 0);
}

bool Describe(const QuantizeEmbeddingsParameters& request, ResponseLayout& layout) {
  std::optional<TensorLayout> y = LayoutOf(request.x, Or(request.output_type, DataType::kInt8));
  // A request that the plan refuses may ask for more dimensions than there are.
  if (!y.has_value() || y->shape.empty() || y->shape.back() < request.dimensions) return false;
  int64_t& last = y->shape.back();
  const int64_t embeddings = last == 0 ? 0 : y->elements / last;
  if (request.dimensions > 0) last = request.dimensions;
  if (request.recipe == EmbeddingRecipe::kBits) last = (last + 7) / 8;
  y->elements = embeddings * last;
  y->bytes = static_cast<uint64_t>(y->elements);  // UINT8 or INT8
  layout.y = *y;
  layout.report_error = request.report_error;
  return true;
}

uint64_t Beside(const QuantizeEmbeddingsParameters& request, const ResponseLayout& /*layout*/) {
  // Up to three columns of values that came in two rows.
  return Beside(0, request.ranges ? ElementsIn(*request.ranges) / 2 : 0);
}

// The largest response, of any method; nullopt: the plan refuses the request.
std::optional<ResponseLayout> LargestResponse(const wire::Request& request) {
  ResponseLayout layout;
  layout.encoding = request.output_encoding;
  layout.output = request.output;
  const bool good = std::visit([&](const auto& parameters) { return Describe(parameters, layout); },
                               request.parameters);
  return good ? std::optional(std::move(layout)) : std::nullopt;
}

}  // namespace

uint64_t ResponseBound(const wire::Request& request) {
  const std::optional<ResponseLayout> layout = LargestResponse(request);
  return layout.has_value() ? wire::MaxEncodedBytes(*layout) : 0;
}

uint64_t PlanBytes(const wire::Request& request) {
  const auto* const embeddings = std::get_if<QuantizeEmbeddingsParameters>(&request.parameters);
  if (embeddings == nullptr || !embeddings->ranges.has_value()) return 0;
  // Requests that the plan refuses before it makes columns.
  if (embeddings->recipe != EmbeddingRecipe::kRanges ||
      embeddings->ranges->data_type != DataType::kFloat) {
    return 0;
  }
  return kColumns * (ElementsIn(*embeddings->ranges) / 2);
}

uint64_t MemoryBound(const wire::Request& request) {
  const std::optional<ResponseLayout> layout = LargestResponse(request);
  if (!layout.has_value()) return PlanBytes(request);  // enough for the plan to report the error
  const uint64_t bound =
      wire::ResponseMemoryBytes(*layout) +
      std::visit([&](const auto& parameters) { return Beside(parameters, *layout); },
                 request.parameters);
  const auto* dynamic = std::get_if<DynamicQuantizeParameters>(&request.parameters);
  if (dynamic == nullptr || !request.x_is_shared()) return bound;
  return bound + OwnRangesBytes(ScaleCount(dynamic->x.shape, dynamic->granularity),
                                dynamic->x.bytes.size());
}

}  // namespace quantd::operations
