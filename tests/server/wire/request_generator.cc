#include "request_generator.h"

#include <google/protobuf/descriptor.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "message_generator.h"
#include "quantd/data_type.h"
#include "quantd/shape.h"
#include "quantd/values.h"

namespace quantd::wire {
namespace {

using Dimensions = std::vector<int64_t>;

// One of `types`, sometimes any other.
template <size_t n>
DataType OneOf(const DataType (&types)[n], Random& random) {
  if (OneIn(random, 30)) return kDataTypes[Below(random, kDataTypes.size())].type;
  return types[Below(random, n)];
}

constexpr DataType kWide[] = {DataType::kFloat, DataType::kFloat, DataType::kFloat16,
                              DataType::kBfloat16, DataType::kInt32};
constexpr DataType kNarrow[] = {
    DataType::kUint8,          DataType::kInt8,       DataType::kUint16,
    DataType::kInt16,          DataType::kUint4,      DataType::kInt4,
    DataType::kUint2,          DataType::kInt2,       DataType::kFloat8E4M3Fn,
    DataType::kFloat8E4M3Fnuz, DataType::kFloat8E5M2, DataType::kFloat8E5M2Fnuz,
    DataType::kFloat6E2M3,     DataType::kFloat6E3M2, DataType::kFloat4E2M1};
constexpr DataType kDynamicScale[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                                      DataType::kFloat8E8M0, DataType::kFloat8E4M3Fn};

std::string RandomElements(DataType type, uint64_t size, Random& random) {
  std::string bytes(size, '\0');
  const bool tame = !OneIn(random, 8);  // elements without NaN, infinities and extremes
  for (char& byte : bytes) byte = static_cast<char>(random());
  if (type == DataType::kFloat && tame) {
    for (size_t i = 0; i + 4 <= size; i += 4) {
      const float value = (static_cast<float>(Below(random, 2001)) - 1000.f) / 8.f;
      std::memcpy(&bytes[i], &value, 4);
    }
  } else if (type == DataType::kFloat16 && tame) {
    for (size_t i = 1; i < size; i += 2) bytes[i] = static_cast<char>(bytes[i] & 0xbf);
  }
  return bytes;
}

// The same elements in their other form.
void UseValues(DataType type, int64_t elements, v1::Tensor& tensor) {
  const std::string bytes = tensor.raw_data();
  const absl::Span<const uint8_t> chunks = View(bytes);
  if (Info(type).kind == DataTypeKind::kInteger) {
    const auto values = UnpackIntegers(type, elements, chunks);
    tensor.mutable_int_values()->mutable_values()->Add(values.begin(), values.end());
  } else {
    const auto values = UnpackFloats(type, elements, chunks);
    tensor.mutable_float_values()->mutable_values()->Add(values.begin(), values.end());
  }
}

v1::Tensor RandomTensor(DataType type, const Dimensions& shape, Random& random) {
  int64_t elements = 1;
  for (int64_t dimension : shape) elements *= dimension;
  const uint64_t right = ByteSize(type, elements);
  const uint64_t size = OneIn(random, 40) ? right + 1 : right;
  v1::Tensor tensor =
      MakeTensor(static_cast<v1::DataType>(type), shape, RandomElements(type, size, random));
  if (size == right && OneIn(random, 10)) UseValues(type, elements, tensor);
  return tensor;
}

// A type and values that are mostly legal.
v1::Tensor RandomScale(const Dimensions& shape, Random& random) {
  constexpr DataType kTypes[] = {DataType::kFloat,    DataType::kFloat, DataType::kFloat16,
                                 DataType::kBfloat16, DataType::kInt32, DataType::kFloat8E8M0};
  v1::Tensor scale = RandomTensor(OneOf(kTypes, random), shape, random);
  if (scale.data_type() == v1::DATA_TYPE_FLOAT && scale.has_raw_data()) {
    for (size_t i = 0; i + 4 <= scale.raw_data().size(); i += 4) {
      const float value = std::ldexp(1.f + static_cast<float>(Below(random, 100)) / 100.f,
                                     static_cast<int>(Below(random, 20)) - 10);
      std::memcpy(&(*scale.mutable_raw_data())[i], &value, 4);
    }
  }
  return scale;
}

int64_t Blocks(int64_t length, int64_t block) { return (length + block - 1) / block; }

// Sets the fields of granularity, and returns the shape of the scale.
template <typename Message>
Dimensions RandomGranularity(const Dimensions& x, Message& request, Random& random) {
  const auto rank = static_cast<int64_t>(x.size());
  const uint64_t kind = Below(random, 5);
  if (kind == 0 || rank == 0) return OneIn(random, 2) ? Dimensions{} : Dimensions{1};
  const auto axis = static_cast<int64_t>(Below(random, rank));
  const auto block = static_cast<int64_t>(1 + Below(random, 8));
  if (kind == 1 || kind == 2) request.set_axis(OneIn(random, 2) ? axis : axis - rank);
  if (kind == 1) return {x[axis]};
  Dimensions scale = x;
  if (kind == 2) {
    request.set_block_size(block);
    scale[axis] = Blocks(x[axis], block);
  } else if (kind == 3) {  // groups; DynamicQuantize takes it as one scale
    for (int64_t& dimension : scale) {
      if (dimension % 2 == 0) dimension /= 2;
    }
  } else {
    for (int64_t& dimension : scale) {
      const auto length = static_cast<int64_t>(1 + Below(random, 5));
      const bool whole = OneIn(random, 3);
      request.add_block_shape(whole ? -1 : length);
      dimension = whole ? 1 : Blocks(dimension, length);
    }
  }
  return scale;
}

Dimensions RandomShape(Random& random) {
  Dimensions shape(Below(random, 4));
  for (int64_t& dimension : shape) {
    dimension = static_cast<int64_t>(OneIn(random, 10) ? Below(random, 70) : Below(random, 9));
  }
  return shape;
}

template <typename Message>
void SetCommon(Message& request, Random& random) {
  if (OneIn(random, 4)) request.set_output_encoding(v1::TENSOR_ENCODING_VALUES);
  if (OneIn(random, 300)) request.mutable_output();
}

// The fields that Quantize and DynamicQuantize share.
template <typename Message>
void SetQuantizing(Message& request, Random& random) {
  SetCommon(request, random);
  if (OneIn(random, 3)) request.set_saturate(OneIn(random, 2));
  if (OneIn(random, 3)) request.set_report_error(true);
}

std::string RandomQuantize(Random& random) {
  v1::QuantizeRequest request;
  SetQuantizing(request, random);
  const Dimensions shape = RandomShape(random);
  *request.mutable_x() = RandomTensor(OneOf(kWide, random), shape, random);
  const Dimensions scale = RandomGranularity(shape, request, random);
  *request.mutable_scale() = RandomScale(scale, random);
  const DataType output = OneOf(kNarrow, random);
  request.set_output_type(static_cast<v1::DataType>(output));
  if (OneIn(random, 2)) *request.mutable_zero_point() = RandomTensor(output, scale, random);
  if (OneIn(random, 5)) request.set_precision(static_cast<v1::DataType>(OneOf(kWide, random)));
  if (OneIn(random, 5)) request.set_zero_point_order(v1::ZERO_POINT_ORDER_BEFORE_ROUNDING);
  return request.SerializeAsString();
}

std::string RandomDequantize(Random& random) {
  v1::DequantizeRequest request;
  SetCommon(request, random);
  const Dimensions shape = RandomShape(random);
  const DataType type = OneIn(random, 8) ? DataType::kInt32 : OneOf(kNarrow, random);
  *request.mutable_x() = RandomTensor(type, shape, random);
  const Dimensions scale = RandomGranularity(shape, request, random);
  *request.mutable_scale() = RandomScale(scale, random);
  request.set_output_type(static_cast<v1::DataType>(
      OneOf({DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}, random)));
  if (OneIn(random, 2)) *request.mutable_zero_point() = RandomTensor(type, scale, random);
  if (OneIn(random, 6)) *request.mutable_tensor_scale() = RandomScale({}, random);
  return request.SerializeAsString();
}

std::string RandomDynamicQuantize(Random& random) {
  v1::DynamicQuantizeRequest request;
  SetQuantizing(request, random);
  const Dimensions shape = RandomShape(random);
  *request.mutable_x() = RandomTensor(OneOf(kWide, random), shape, random);
  RandomGranularity(shape, request, random);
  request.set_output_type(static_cast<v1::DataType>(OneOf(kNarrow, random)));
  request.set_scale_type(static_cast<v1::DataType>(OneOf(kDynamicScale, random)));
  request.set_symmetry(static_cast<v1::Symmetry>(Below(random, 3)));
  request.set_non_finite(static_cast<v1::NonFinite>(Below(random, 3)));
  return request.SerializeAsString();
}

std::string RandomQuantizeEmbeddings(Random& random) {
  v1::QuantizeEmbeddingsRequest request;
  SetCommon(request, random);
  const Dimensions shape = RandomShape(random);
  *request.mutable_x() = RandomTensor(
      OneOf({DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}, random), shape, random);
  const int recipe = static_cast<int>(Below(random, OneIn(random, 20) ? 7 : 5));
  request.set_recipe(static_cast<v1::EmbeddingRecipe>(recipe));
  const int64_t width = shape.empty() ? 0 : shape.back();
  int64_t used = width;
  if (OneIn(random, 3)) {
    request.set_dimensions(static_cast<int64_t>(Below(random, static_cast<uint64_t>(width) + 1)));
    if (request.dimensions() > 0) used = request.dimensions();
  }
  if (recipe == v1::EMBEDDING_RECIPE_RANGES || OneIn(random, 20)) {
    v1::Tensor& ranges = *request.mutable_ranges();
    ranges.set_data_type(v1::DATA_TYPE_FLOAT);
    ranges.add_shape(2);
    ranges.add_shape(OneIn(random, 20) ? used + 1 : used);
    std::vector<float> values(static_cast<size_t>(2 * used), -1);
    for (size_t i = static_cast<size_t>(used); i < values.size(); ++i) {
      values[i] = static_cast<float>(Below(random, 100)) / 8 - 1;
    }
    ranges.set_raw_data(values.data(), values.size() * sizeof(float));
  }
  if (OneIn(random, 2)) {
    request.set_output_type(
        static_cast<v1::DataType>(OneOf({DataType::kInt8, DataType::kUint8}, random)));
  }
  request.set_normalize(OneIn(random, 2));
  if (recipe == v1::EMBEDDING_RECIPE_BITS || OneIn(random, 20)) {
    request.set_bit_order(static_cast<v1::BitOrder>(Below(random, 3)));
    request.set_bit_threshold(static_cast<v1::BitThreshold>(Below(random, 3)));
    if (OneIn(random, 3)) request.set_signed_bits(static_cast<v1::SignedBits>(Below(random, 3)));
  } else if (OneIn(random, 3)) {
    request.set_report_error(true);
  }
  request.set_non_finite(static_cast<v1::NonFinite>(Below(random, 3)));
  return request.SerializeAsString();
}

}  // namespace

const google::protobuf::MethodDescriptor& DescriptorOf(Method method) {
  const MethodInfo& info = Info(method);
  return *google::protobuf::DescriptorPool::generated_pool()
              ->FindServiceByName(std::string(info.service))
              ->FindMethodByName(std::string(info.name));
}

std::unique_ptr<google::protobuf::Message> NewMessage(const google::protobuf::Descriptor& type) {
  auto* const factory = google::protobuf::MessageFactory::generated_factory();
  return std::unique_ptr<google::protobuf::Message>(factory->GetPrototype(&type)->New());
}

std::string RandomRequest(Method method, Random& random) {
  switch (method) {
    case Method::kQuantize:
      return RandomQuantize(random);
    case Method::kDequantize:
      return RandomDequantize(random);
    case Method::kQuantizeEmbeddings:
      return RandomQuantizeEmbeddings(random);
    default:
      return RandomDynamicQuantize(random);
  }
}

std::string AnyMessage(Method subject, Random& random) {
  std::string message;
  do {  // parts of a message are merged
    if (!OneIn(random, 4)) {
      message += RandomMessage(*DescriptorOf(subject).input_type(), random);
    } else if (subject != Method::kStream) {
      message += RandomRequest(subject, random);
    } else {
      const Method method = kMethods[Below(random, kOperations)].method;
      message += MakeItem(random(), method, RandomRequest(method, random)).SerializeAsString();
    }
  } while (OneIn(random, 8));
  if (OneIn(random, 3)) message = Mutate(std::move(message), random);
  return message;
}

}  // namespace quantd::wire
