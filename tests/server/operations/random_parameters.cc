#include "random_parameters.h"

#include <optional>
#include <vector>

#include "quantd/data_type.h"
#include "quantd/parameters.h"
#include "quantd/shape.h"

namespace quantd::operations {
namespace {

using wire::Below;
using wire::OneIn;
using wire::Random;

constexpr uint64_t kMostBytes = 4 << 20;
constexpr int64_t kMostElements = kMostBytes / 4;

constexpr DataType kWide[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                              DataType::kInt32};
constexpr DataType kScales[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                                DataType::kInt32, DataType::kFloat8E8M0};
constexpr DataType kDynamicScales[] = {DataType::kUnspecified, DataType::kFloat,
                                       DataType::kFloat16,     DataType::kBfloat16,
                                       DataType::kFloat8E8M0,  DataType::kFloat8E4M3Fn};
constexpr DataType kFreeZeroPoints[] = {DataType::kInt8, DataType::kUint8, DataType::kInt32};

template <size_t n>
DataType OneOf(const DataType (&types)[n], Random& random) {
  return types[Below(random, n)];
}
DataType AnyType(Random& random) { return kDataTypes[Below(random, kDataTypes.size())].type; }
DataType AnyTypeOrNone(Random& random) {
  return OneIn(random, 5) ? DataType::kUnspecified : AnyType(random);
}

Shape RandomShape(Random& random) {
  const auto rank = static_cast<size_t>(Below(random, 6));
  Shape shape;
  bool empty = false;
  int64_t elements = 1;
  const uint64_t empty_one_in = 1 + Below(random, 30);
  for (size_t i = 0; i < rank; ++i) {
    const uint64_t most = uint64_t{1} << Below(random, 14);
    int64_t length = static_cast<int64_t>(1 + Below(random, most));
    if (OneIn(random, empty_one_in + 3)) length = 0;
    if (length > 0 && elements * length > kMostElements) length = 1;
    empty |= length == 0;
    if (length > 0) elements *= length;
    shape.push_back(length);
  }
  // An empty tensor can claim any length for its other dimensions at no cost to its sender.
  if (empty && OneIn(random, 2)) {
    for (int64_t& length : shape) {
      if (length != 0) length = static_cast<int64_t>(1 + Below(random, uint64_t{1} << 17));
    }
  }
  return shape;
}

int64_t Blocks(int64_t length, int64_t block) { return (length + block - 1) / block; }

// Sets `scale` to the shape that the scale needs.
Granularity RandomGranularity(const Shape& x, Random& random, Shape& scale) {
  Granularity granularity;
  const auto rank = static_cast<int64_t>(x.size());
  const uint64_t kind = rank == 0 ? 0 : Below(random, 5);
  if (kind == 0) {
    scale = OneIn(random, 2) ? Shape{} : Shape{1};
    return granularity;
  }
  scale = x;
  if (kind == 1 || kind == 2) {
    const auto axis = static_cast<int64_t>(Below(random, rank));
    if (axis != 1 || OneIn(random, 2)) {
      granularity.axis = OneIn(random, 2) ? axis : axis - rank;
    }
    if (kind == 1) {
      scale = {x[axis]};
    } else {
      granularity.block_size = static_cast<int64_t>(1 + Below(random, 40));
      if (OneIn(random, 20))
        granularity.block_size = INT64_MAX - static_cast<int64_t>(Below(random, 2));
      if (granularity.block_size >= x[axis]) {
        scale[axis] = x[axis] == 0 ? 0 : 1;
      } else {
        scale[axis] = Blocks(x[axis], granularity.block_size);
      }
    }
  } else if (kind == 3) {
    for (int64_t& length : scale) {
      if (length % 2 == 0) length /= 2;
    }
  } else {
    for (int64_t& length : scale) {
      const bool whole = OneIn(random, 3);
      const auto block = static_cast<int64_t>(1 + Below(random, 20));
      granularity.block_shape.push_back(whole ? -1 : block);
      length = whole ? 1 : Blocks(length, block);
    }
  }
  return granularity;
}

QuantizeParameters RandomQuantize(Random& random) {
  QuantizeParameters request;
  const Shape shape = RandomShape(random);
  request.x = MakeView(OneIn(random, 20) ? AnyType(random) : OneOf(kWide, random), shape);
  Shape scale;
  request.granularity = RandomGranularity(shape, random, scale);
  request.scale = MakeView(OneIn(random, 20) ? AnyType(random) : OneOf(kScales, random), scale);
  request.output_type = AnyTypeOrNone(random);
  if (OneIn(random, 3)) request.zero_point_order = ZeroPointOrder::kBeforeRounding;
  if (OneIn(random, 2)) {
    DataType type = request.output_type;
    if (type == DataType::kUnspecified || OneIn(random, 10)) type = AnyType(random);
    // BEFORE_ROUNDING allows these with every output type.
    const bool before = request.zero_point_order == ZeroPointOrder::kBeforeRounding;
    if (before && OneIn(random, 2)) type = OneOf(kFreeZeroPoints, random);
    request.zero_point = MakeView(type, scale, OneIn(random, 2));
  }
  request.saturate = OneIn(random, 2);
  if (OneIn(random, 3)) request.precision = OneOf(kWide, random);
  request.report_error = OneIn(random, 2);
  return request;
}

DequantizeParameters RandomDequantize(Random& random) {
  DequantizeParameters request;
  const Shape shape = RandomShape(random);
  request.x = MakeView(AnyType(random), shape);
  Shape scale;
  request.granularity = RandomGranularity(shape, random, scale);
  request.scale = MakeView(OneIn(random, 20) ? AnyType(random) : OneOf(kScales, random), scale);
  if (OneIn(random, 2)) {
    const DataType type = OneIn(random, 5) ? DataType::kInt32 : request.x.data_type;
    request.zero_point = MakeView(type, scale, OneIn(random, 2));
  }
  if (OneIn(random, 4)) request.tensor_scale = MakeView(DataType::kFloat, {});
  request.output_type = OneIn(random, 3) ? DataType::kUnspecified : OneOf(kWide, random);
  return request;
}

DynamicQuantizeParameters RandomDynamicQuantize(Random& random) {
  DynamicQuantizeParameters request;
  const Shape shape = RandomShape(random);
  request.x = MakeView(OneOf(kWide, random), shape);
  Shape scale;
  request.granularity = RandomGranularity(shape, random, scale);
  request.output_type = AnyTypeOrNone(random);
  request.saturate = OneIn(random, 2);
  request.scale_type = OneOf(kDynamicScales, random);
  request.symmetry = static_cast<Symmetry>(Below(random, 3));
  request.non_finite = OneIn(random, 2) ? NonFinite::kReject : NonFinite::kIgnore;
  request.report_error = OneIn(random, 2);
  return request;
}

QuantizeEmbeddingsParameters RandomQuantizeEmbeddings(Random& random) {
  QuantizeEmbeddingsParameters request;
  const Shape shape = RandomShape(random);
  request.x = MakeView(OneIn(random, 20) ? AnyType(random) : OneOf(kWide, random), shape);
  request.recipe = static_cast<EmbeddingRecipe>(Below(random, 5));
  const int64_t width = shape.empty() ? 0 : shape.back();
  if (OneIn(random, 3)) request.dimensions = static_cast<int64_t>(Below(random, width + 2));
  const int64_t used = request.dimensions == 0 ? width : request.dimensions;
  if (request.recipe == EmbeddingRecipe::kRanges || OneIn(random, 20)) {
    const Shape ranges = {2, OneIn(random, 20) ? used + 1 : used};
    request.ranges = MakeView(DataType::kFloat, ranges, OneIn(random, 2));
  }
  if (OneIn(random, 2)) request.output_type = OneIn(random, 2) ? DataType::kInt8 : AnyType(random);
  request.normalize = OneIn(random, 2);
  if (request.recipe == EmbeddingRecipe::kBits) {
    request.bit_order = static_cast<BitOrder>(Below(random, 3));
    request.bit_threshold = static_cast<BitThreshold>(Below(random, 3));
    if (OneIn(random, 3)) request.signed_bits = SignedBits::kTwosComplement;
  }
  request.non_finite = OneIn(random, 2) ? NonFinite::kReject : NonFinite::kIgnore;
  if (OneIn(random, 3)) request.report_error = true;
  return request;
}

}  // namespace

TensorView MakeView(DataType type, const Shape& shape, bool zeros) {
  static const auto* const good = new std::vector<uint8_t>(kMostBytes, 0x38);
  static const auto* const zero = new std::vector<uint8_t>(kMostBytes, 0);
  TensorView view;
  view.data_type = type;
  view.shape = shape;
  const absl::StatusOr<int64_t> elements = ElementCount(shape, "shape");
  if (!elements.ok()) return view;
  const uint64_t bytes = ByteSize(type, *elements);
  if (bytes > kMostBytes) return view;  // x is empty: a plan refuses it
  view.bytes = absl::MakeConstSpan((zeros ? zero : good)->data(), bytes);
  return view;
}

wire::Request RandomParameters(wire::Method method, Random& random) {
  wire::Request request;
  switch (method) {
    case wire::Method::kQuantize:
      request.parameters = RandomQuantize(random);
      break;
    case wire::Method::kDequantize:
      request.parameters = RandomDequantize(random);
      break;
    case wire::Method::kQuantizeEmbeddings:
      request.parameters = RandomQuantizeEmbeddings(random);
      break;
    default:
      request.parameters = RandomDynamicQuantize(random);
      break;
  }
  if (OneIn(random, 3)) request.output_encoding = wire::Encoding::kValues;
  return request;
}

}  // namespace quantd::operations
