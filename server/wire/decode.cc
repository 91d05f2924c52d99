#include "server/wire/decode.h"

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "quantd/data_type.h"
#include "quantd/field_error.h"
#include "quantd/v1/quantization.pb.h"
#include "quantd/values.h"
#include "server/wire/split.h"

namespace quantd::wire {
namespace {

absl::Status Missing(absl::string_view field) {
  return FieldError(field, absl::StrCat(field, " is required"));
}

// Reads the fields of one request. The first error is kept, and values read after it are
// meaningless, so that code for a request is a list of its fields.
class Converter {
 public:
  explicit Converter(const RawData& raw) : raw_(raw) {}

  const absl::Status& status() const { return status_; }
  // Moves what the request holds besides the parameters into it; call this after all fields are
  // read.
  void TakeRest(Request& request) {
    request.packed = std::move(packed_);
    request.shared = std::move(shared_);
    request.output = std::move(output_);
  }

  TensorView Required(TensorField field, bool present, const v1::Tensor& tensor);
  std::optional<TensorView> Optional(TensorField field, bool present, const v1::Tensor& tensor);
  DataType Type(int number, absl::string_view name);
  // Converts the contract's number to the core's value. kMax is the contract's last one and kLast
  // the core's: a value that only one of them has is a compile error.
  template <auto kLast, int kMax, typename Enum>
  decltype(kLast) Same(Enum value, absl::string_view name) {
    static_assert(static_cast<int>(kLast) == kMax);
    return static_cast<decltype(kLast)>(Number(value, name, kMax));
  }
  // The same if the core has no value for 0, which means its first one.
  template <auto kLast, int kMax, typename Enum>
  decltype(kLast) SameOrFirst(Enum value, absl::string_view name) {
    static_assert(static_cast<int>(kLast) + 1 == kMax);
    const int number = Number(value, name, kMax);
    return static_cast<decltype(kLast)>(number == 0 ? 0 : number - 1);
  }
  NonFinite ReadNonFinite(v1::NonFinite value) {
    return SameOrFirst<NonFinite::kIgnore, v1::NonFinite_MAX>(value, "non_finite");
  }
  Symmetry ReadSymmetry(v1::Symmetry value) {
    return Same<Symmetry::kSymmetric, v1::Symmetry_MAX>(value, "symmetry");
  }
  template <typename Message>
  Granularity ReadGranularity(const Message& message);
  // Fields that every request has, and that are not for the core.
  template <typename Message>
  Encoding ReadOutput(const Message& message);

 private:
  void Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  // Returns `value` if it is in 0 to `last`.
  template <typename Enum>
  int Number(Enum value, absl::string_view name, int last);
  Shape Dimensions(const google::protobuf::RepeatedField<int64_t>& list, absl::string_view name);
  TensorView Tensor(TensorField field, const v1::Tensor& tensor);
  absl::Span<const uint8_t> Pack(absl::string_view name, const TensorView& view,
                                 const v1::Tensor& tensor);
  void Share(TensorField field, const TensorView& view, const v1::SharedMemoryReference& reference);

  const RawData& raw_;
  std::vector<std::vector<uint8_t>> packed_;
  std::vector<SharedTensor> shared_;
  std::optional<SharedReference> output_;
  absl::Status status_;
};

DataType Converter::Type(int number, absl::string_view name) {
  if (number == 0) return DataType::kUnspecified;
  const DataTypeInfo* info = FindDataType(number);
  if (info != nullptr) return info->type;
  Fail(FieldError(name, absl::StrCat(name, " is ", number, ", which is not a number of DataType")));
  return DataType::kUnspecified;
}

template <typename Enum>
int Converter::Number(Enum value, absl::string_view name, int last) {
  if (value >= 0 && value <= last) return value;
  Fail(FieldError(name,
                  absl::StrCat(name, " is ", static_cast<int>(value), ", which is not a number of ",
                               google::protobuf::GetEnumDescriptor<Enum>()->name())));
  return 0;
}

Shape Converter::Dimensions(const google::protobuf::RepeatedField<int64_t>& list,
                            absl::string_view name) {
  if (list.size() > kMaxRank) {
    Fail(FieldError(name, absl::StrCat(name, " has ", list.size(), " dimensions, at most ",
                                       kMaxRank, " are possible")));
    return {};
  }
  return Shape(list.begin(), list.end());
}

// Packs a tensor that was sent as values.
absl::Span<const uint8_t> Converter::Pack(absl::string_view tensor_name, const TensorView& view,
                                          const v1::Tensor& tensor) {
  const bool floats = tensor.contents_case() == v1::Tensor::kFloatValues;
  const std::string name = absl::StrCat(tensor_name, floats ? ".float_values" : ".int_values");
  const DataTypeInfo& type = Info(view.data_type);
  if (floats == (type.kind == DataTypeKind::kInteger)) {
    Fail(FieldError(name, absl::StrCat(name, " can't hold the ", type.name, " of ", tensor_name,
                                       ".data_type: use ", floats ? "int_values" : "float_values",
                                       " or raw_data")));
    return {};
  }
  const int count =
      floats ? tensor.float_values().values_size() : tensor.int_values().values_size();
  absl::StatusOr<int64_t> elements = ElementCount(view.shape, absl::StrCat(tensor_name, ".shape"));
  if (!elements.ok()) {
    Fail(elements.status());
    return {};
  }
  if (count != *elements) {
    Fail(FieldError(name, absl::StrCat(name, " has ", count, " values, ", tensor_name, ".shape ",
                                       ShapeString(view.shape), " has ", *elements, " elements")));
    return {};
  }
  const auto& float_values = tensor.float_values().values();
  const auto& int_values = tensor.int_values().values();
  absl::StatusOr<std::vector<uint8_t>> packed =
      floats ? PackFloats(type.type, {float_values.data(), static_cast<size_t>(count)}, name)
             : PackIntegers(type.type, {int_values.data(), static_cast<size_t>(count)}, name);
  if (!packed.ok()) {
    Fail(packed.status());
    return {};
  }
  packed_.push_back(*std::move(packed));
  return packed_.back();
}

SharedReference Read(const v1::SharedMemoryReference& message) {
  return {message.region(), message.offset(), message.byte_size()};
}

void Converter::Share(TensorField field, const TensorView& view,
                      const v1::SharedMemoryReference& reference) {
  const absl::string_view tensor = kTensorNames[static_cast<size_t>(field)];
  absl::StatusOr<int64_t> elements = ElementCount(view.shape, absl::StrCat(tensor, ".shape"));
  if (!elements.ok()) return Fail(elements.status());
  const uint64_t bytes = ByteSize(view.data_type, *elements);
  if (reference.byte_size() != bytes) {
    const std::string name = absl::StrCat(tensor, ".shared_memory.byte_size");
    return Fail(FieldError(
        name, absl::StrCat(name, " is ", reference.byte_size(), ", ", Name(view.data_type),
                           " of shape ", ShapeString(view.shape), " takes ", bytes)));
  }
  shared_.push_back({field, Read(reference)});
}

TensorView Converter::Tensor(TensorField field, const v1::Tensor& tensor) {
  const absl::string_view name = kTensorNames[static_cast<size_t>(field)];
  const std::string type_name = absl::StrCat(name, ".data_type");
  TensorView view;
  view.data_type = Type(tensor.data_type(), type_name);
  if (view.data_type == DataType::kUnspecified) Fail(Missing(type_name));
  view.shape = Dimensions(tensor.shape(), absl::StrCat(name, ".shape"));
  if (!status_.ok()) return view;
  switch (tensor.contents_case()) {
    case v1::Tensor::CONTENTS_NOT_SET:
      break;
    case v1::Tensor::kRawData:
      view.bytes = raw_[static_cast<size_t>(field)];
      break;
    case v1::Tensor::kFloatValues:
    case v1::Tensor::kIntValues:
      view.bytes = Pack(name, view, tensor);
      break;
    case v1::Tensor::kSharedMemory:
      Share(field, view, tensor.shared_memory());
      break;
  }
  return view;
}

TensorView Converter::Required(TensorField field, bool present, const v1::Tensor& tensor) {
  if (present) return Tensor(field, tensor);
  Fail(Missing(kTensorNames[static_cast<size_t>(field)]));
  return {};
}

std::optional<TensorView> Converter::Optional(TensorField field, bool present,
                                              const v1::Tensor& tensor) {
  if (!present) return std::nullopt;
  return Tensor(field, tensor);
}

template <typename Message>
Granularity Converter::ReadGranularity(const Message& message) {
  Granularity granularity;
  if (message.has_axis()) granularity.axis = message.axis();
  granularity.block_size = message.block_size();
  granularity.block_shape = Dimensions(message.block_shape(), "block_shape");
  return granularity;
}

template <typename Message>
Encoding Converter::ReadOutput(const Message& message) {
  const Encoding encoding = SameOrFirst<Encoding::kValues, v1::TensorEncoding_MAX>(
      message.output_encoding(), "output_encoding");
  if (message.has_output()) {
    if (encoding == Encoding::kValues) {
      Fail(FieldError("output_encoding",
                      "output_encoding is VALUES, but y is written to output as packed bytes"));
    }
    output_ = Read(message.output());
  }
  return encoding;
}

QuantizeParameters Read(const v1::QuantizeRequest& message, Converter& from) {
  QuantizeParameters to;
  to.x = from.Required(TensorField::kX, message.has_x(), message.x());
  to.scale = from.Required(TensorField::kScale, message.has_scale(), message.scale());
  to.zero_point =
      from.Optional(TensorField::kZeroPoint, message.has_zero_point(), message.zero_point());
  to.output_type = from.Type(message.output_type(), "output_type");
  to.granularity = from.ReadGranularity(message);
  to.saturate = !message.has_saturate() || message.saturate();
  to.precision = from.Type(message.precision(), "precision");
  to.zero_point_order = from.SameOrFirst<ZeroPointOrder::kBeforeRounding, v1::ZeroPointOrder_MAX>(
      message.zero_point_order(), "zero_point_order");
  to.report_error = message.report_error();
  return to;
}

DequantizeParameters Read(const v1::DequantizeRequest& message, Converter& from) {
  DequantizeParameters to;
  to.x = from.Required(TensorField::kX, message.has_x(), message.x());
  to.scale = from.Required(TensorField::kScale, message.has_scale(), message.scale());
  to.zero_point =
      from.Optional(TensorField::kZeroPoint, message.has_zero_point(), message.zero_point());
  to.tensor_scale =
      from.Optional(TensorField::kTensorScale, message.has_tensor_scale(), message.tensor_scale());
  to.output_type = from.Type(message.output_type(), "output_type");
  to.granularity = from.ReadGranularity(message);
  return to;
}

DynamicQuantizeParameters Read(const v1::DynamicQuantizeRequest& message, Converter& from) {
  DynamicQuantizeParameters to;
  to.x = from.Required(TensorField::kX, message.has_x(), message.x());
  to.output_type = from.Type(message.output_type(), "output_type");
  to.granularity = from.ReadGranularity(message);
  to.saturate = !message.has_saturate() || message.saturate();
  to.scale_type = from.Type(message.scale_type(), "scale_type");
  to.symmetry = from.ReadSymmetry(message.symmetry());
  to.non_finite = from.ReadNonFinite(message.non_finite());
  to.report_error = message.report_error();
  return to;
}

QuantizeEmbeddingsParameters Read(const v1::QuantizeEmbeddingsRequest& message, Converter& from) {
  QuantizeEmbeddingsParameters to;
  to.x = from.Required(TensorField::kX, message.has_x(), message.x());
  to.recipe =
      from.Same<EmbeddingRecipe::kBits, v1::EmbeddingRecipe_MAX>(message.recipe(), "recipe");
  to.ranges = from.Optional(TensorField::kRanges, message.has_ranges(), message.ranges());
  to.output_type = from.Type(message.output_type(), "output_type");
  to.dimensions = message.dimensions();
  to.normalize = message.normalize();
  to.bit_order = from.Same<BitOrder::kLsbFirst, v1::BitOrder_MAX>(message.bit_order(), "bit_order");
  to.bit_threshold = from.Same<BitThreshold::kGreaterOrEqual, v1::BitThreshold_MAX>(
      message.bit_threshold(), "bit_threshold");
  to.signed_bits = from.Same<SignedBits::kTwosComplement, v1::SignedBits_MAX>(message.signed_bits(),
                                                                              "signed_bits");
  to.non_finite = from.ReadNonFinite(message.non_finite());
  to.report_error = message.report_error();
  return to;
}

template <typename Message>
absl::StatusOr<Request> Convert(const Message& message, const RawData& raw) {
  Converter converter(raw);
  Request request;
  request.parameters = Read(message, converter);
  request.output_encoding = converter.ReadOutput(message);
  if (!converter.status().ok()) return converter.status();
  converter.TakeRest(request);
  return request;
}

absl::StatusOr<Request> ConvertItem(const v1::StreamRequest& parsed, const Split& split) {
  const auto convert = [&](Method method, const auto& message) {
    return Convert(message, split.of(method));
  };
  switch (parsed.request_case()) {
    case v1::StreamRequest::kQuantize:
      return convert(Method::kQuantize, parsed.quantize());
    case v1::StreamRequest::kDequantize:
      return convert(Method::kDequantize, parsed.dequantize());
    case v1::StreamRequest::kDynamicQuantize:
      return convert(Method::kDynamicQuantize, parsed.dynamic_quantize());
    case v1::StreamRequest::kQuantizeEmbeddings:
      return convert(Method::kQuantizeEmbeddings, parsed.quantize_embeddings());
    case v1::StreamRequest::REQUEST_NOT_SET:
      break;
  }
  return FieldError(
      "request", "none of quantize, dequantize, dynamic_quantize and quantize_embeddings is set");
}

template <typename Message>
absl::StatusOr<Request> Decode(Method method, BytesView bytes, BetweenPieces between) {
  const Split split = SplitRequest(method, bytes, between);
  Message message;
  if (absl::Status status = Parse(split, message, between); !status.ok()) return status;
  if constexpr (std::is_same_v<Message, v1::StreamRequest>) {
    return ConvertItem(message, split);
  } else {
    return Convert(message, split.of(method));
  }
}

}  // namespace

absl::StatusOr<Request> DecodeRequest(Method method, BytesView message, BetweenPieces between) {
  switch (method) {
    case Method::kQuantize:
      return Decode<v1::QuantizeRequest>(method, message, between);
    case Method::kDequantize:
      return Decode<v1::DequantizeRequest>(method, message, between);
    case Method::kQuantizeEmbeddings:
      return Decode<v1::QuantizeEmbeddingsRequest>(method, message, between);
    case Method::kDynamicQuantize:
      return Decode<v1::DynamicQuantizeRequest>(method, message, between);
    case Method::kStream:
      return Decode<v1::StreamRequest>(method, message, between);
    case Method::kGetServerInfo:
      break;
  }
  return absl::InternalError(absl::StrCat(Name(method), " is not an operation with one request"));
}

}  // namespace quantd::wire
