#include "server/wire/convert.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "quantd/data_type.h"
#include "quantd/field_error.h"
#include "quantd/values.h"

namespace quantd::wire {
namespace {

using Contents = TensorFields::Contents;

absl::Status Unsupported(absl::string_view field) {
  return FieldError(field,
                    absl::StrCat(field, " is set: shared memory is not built in this version"),
                    absl::StatusCode::kUnimplemented);
}

absl::Status Missing(absl::string_view field) {
  return FieldError(field, absl::StrCat(field, " is required"));
}

// Reads the fields of one request. The first error stays, and what is read after one means nothing,
// so that a request reads as a list of its fields.
class Converter {
 public:
  explicit Converter(RequestFields& fields) : fields_(fields) {}

  const absl::Status& status() const { return status_; }
  std::vector<std::vector<uint8_t>> TakePacked() { return std::move(packed_); }

  TensorView Required(TensorField field);
  std::optional<TensorView> Optional(TensorField field);

  DataType Type(uint32_t number, absl::string_view name) {
    return TypeOf(static_cast<int32_t>(fields_.scalars[number]), name);
  }
  // The number of an enum below `end`.
  int Enum(uint32_t number, absl::string_view name, absl::string_view enum_name, int end);
  bool Bool(uint32_t number, bool unset) const {
    return fields_.present[number] ? fields_.scalars[number] != 0 : unset;
  }
  Granularity ReadGranularity();
  // Fields that every request has, and that are not for the core.
  Encoding ReadOutput();

 private:
  void Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  DataType TypeOf(int32_t number, absl::string_view name);
  Shape Dimensions(DimensionList& list, absl::string_view name);
  TensorView Tensor(TensorField field);
  ByteChunks Pack(absl::string_view tensor, const TensorView& view, const TensorFields& fields);
  absl::StatusOr<std::vector<uint8_t>> PackIntValues(absl::string_view name,
                                                     const DataTypeInfo& type,
                                                     const IntegerList& list);

  RequestFields& fields_;
  std::vector<std::vector<uint8_t>> packed_;
  absl::Status status_;
};

DataType Converter::TypeOf(int32_t number, absl::string_view name) {
  if (number == 0) return DataType::kUnspecified;
  const DataTypeInfo* info = FindDataType(number);
  if (info != nullptr) return info->type;
  Fail(FieldError(name, absl::StrCat(name, " is ", number, ", which is not a number of DataType")));
  return DataType::kUnspecified;
}

int Converter::Enum(uint32_t number, absl::string_view name, absl::string_view enum_name, int end) {
  const auto value = static_cast<int32_t>(fields_.scalars[number]);
  if (value >= 0 && value < end) return value;
  Fail(FieldError(name,
                  absl::StrCat(name, " is ", value, ", which is not a number of ", enum_name)));
  return 0;
}

Shape Converter::Dimensions(DimensionList& list, absl::string_view name) {
  if (list.count > kMaxRank) {
    Fail(FieldError(name, absl::StrCat(name, " has ", list.count, " dimensions, at most ", kMaxRank,
                                       " are possible")));
  }
  return std::move(list.dimensions);
}

// In steps, so that the values never exist as int64 all at once.
absl::StatusOr<std::vector<uint8_t>> Converter::PackIntValues(absl::string_view name,
                                                              const DataTypeInfo& type,
                                                              const IntegerList& list) {
  constexpr size_t kStep = 4096;  // a multiple of 8 bits of every type
  std::vector<uint8_t> packed;
  packed.reserve(ByteSize(type.type, static_cast<int64_t>(list.values.size())));
  std::vector<int64_t> step;
  for (size_t begin = 0; begin < list.values.size(); begin += kStep) {
    const size_t end = std::min(begin + kStep, list.values.size());
    step.assign(list.values.begin() + begin, list.values.begin() + end);
    for (size_t i = 0; i < step.size(); ++i) {
      if (step[i] >= type.minimum && step[i] <= type.maximum) continue;
      return FieldError(name, absl::StrCat(name, "[", begin + i, "] is ", step[i], ", ", type.name,
                                           " holds ", type.minimum, " to ", type.maximum));
    }
    absl::StatusOr<std::vector<uint8_t>> bytes = PackIntegers(type.type, step, name);
    if (!bytes.ok()) return bytes.status();
    packed.insert(packed.end(), bytes->begin(), bytes->end());
  }
  if (list.wide.has_value()) {
    return FieldError(
        name, absl::StrCat(name, "[", list.wide->index, "] is ", list.wide->value, ", ", type.name,
                           " holds ", type.minimum, " to ", type.maximum));
  }
  return packed;
}

// Bytes of a tensor that came as values.
ByteChunks Converter::Pack(absl::string_view tensor, const TensorView& view,
                           const TensorFields& fields) {
  const bool floats = fields.contents == Contents::kFloatValues;
  const std::string name = absl::StrCat(tensor, floats ? ".float_values" : ".int_values");
  const DataTypeInfo& type = Info(view.data_type);
  if (floats == (type.kind == DataTypeKind::kInteger)) {
    Fail(FieldError(
        name, absl::StrCat(name, " can't hold the ", type.name, " of ", tensor, ".data_type: use ",
                           floats ? "int_values" : "float_values", " or raw_data")));
    return {};
  }
  const uint64_t count = floats ? fields.float_values.size() : fields.int_values.count;
  absl::StatusOr<int64_t> elements = ElementCount(view.shape, absl::StrCat(tensor, ".shape"));
  if (!elements.ok()) {
    Fail(elements.status());
    return {};
  }
  if (count != static_cast<uint64_t>(*elements)) {
    Fail(FieldError(name, absl::StrCat(name, " has ", count, " values, ", tensor, ".shape ",
                                       ShapeString(view.shape), " has ", *elements, " elements")));
    return {};
  }
  absl::StatusOr<std::vector<uint8_t>> packed =
      floats ? PackFloats(type.type, fields.float_values, name)
             : PackIntValues(name, type, fields.int_values);
  if (!packed.ok()) {
    Fail(packed.status());
    return {};
  }
  packed_.push_back(*std::move(packed));
  return ByteChunks(packed_.back());
}

TensorView Converter::Tensor(TensorField field) {
  TensorFields& fields = fields_.tensors[static_cast<int>(field)];
  const absl::string_view name = kTensorFieldNames[static_cast<int>(field)];
  const std::string type_name = absl::StrCat(name, ".data_type");
  TensorView view;
  view.data_type = TypeOf(fields.data_type, type_name);
  if (view.data_type == DataType::kUnspecified) Fail(Missing(type_name));
  view.shape = Dimensions(fields.shape, absl::StrCat(name, ".shape"));
  if (!status_.ok()) return view;
  switch (fields.contents) {
    case Contents::kNone:
      break;
    case Contents::kRawData:
      view.bytes = std::move(fields.raw_data);
      break;
    case Contents::kFloatValues:
    case Contents::kIntValues:
      view.bytes = Pack(name, view, fields);
      break;
    case Contents::kSharedMemory:
      Fail(Unsupported(absl::StrCat(name, ".shared_memory")));
      break;
  }
  return view;
}

TensorView Converter::Required(TensorField field) {
  if (fields_.tensor(field).present) return Tensor(field);
  Fail(Missing(kTensorFieldNames[static_cast<int>(field)]));
  return {};
}

std::optional<TensorView> Converter::Optional(TensorField field) {
  if (!fields_.tensor(field).present) return std::nullopt;
  return Tensor(field);
}

Granularity Converter::ReadGranularity() {
  Granularity granularity;
  if (fields_.present[field_number::kAxis]) {
    granularity.axis = static_cast<int64_t>(fields_.scalars[field_number::kAxis]);
  }
  granularity.block_size = static_cast<int64_t>(fields_.scalars[field_number::kBlockSize]);
  granularity.block_shape = Dimensions(fields_.block_shape, "block_shape");
  return granularity;
}

Encoding Converter::ReadOutput() {
  if (fields_.present[field_number::kOutput]) Fail(Unsupported("output"));
  const int encoding = Enum(field_number::kOutputEncoding, "output_encoding", "TensorEncoding", 3);
  return encoding == 2 ? Encoding::kValues : Encoding::kRaw;
}

QuantizeParameters ReadQuantize(Converter& from) {
  QuantizeParameters to;
  to.x = from.Required(TensorField::kX);
  to.scale = from.Required(TensorField::kScale);
  to.zero_point = from.Optional(TensorField::kZeroPoint);
  to.output_type = from.Type(field_number::kOutputType, "output_type");
  to.granularity = from.ReadGranularity();
  to.saturate = from.Bool(field_number::kSaturate, true);
  to.precision = from.Type(field_number::kPrecision, "precision");
  const int order =
      from.Enum(field_number::kZeroPointOrder, "zero_point_order", "ZeroPointOrder", 3);
  to.zero_point_order =
      order == 2 ? ZeroPointOrder::kBeforeRounding : ZeroPointOrder::kAfterRounding;
  to.report_error = from.Bool(field_number::kReportError, false);
  return to;
}

DequantizeParameters ReadDequantize(Converter& from) {
  DequantizeParameters to;
  to.x = from.Required(TensorField::kX);
  to.scale = from.Required(TensorField::kScale);
  to.zero_point = from.Optional(TensorField::kZeroPoint);
  to.tensor_scale = from.Optional(TensorField::kTensorScale);
  to.output_type = from.Type(field_number::kOutputType, "output_type");
  to.granularity = from.ReadGranularity();
  return to;
}

DynamicQuantizeParameters ReadDynamicQuantize(Converter& from) {
  DynamicQuantizeParameters to;
  to.x = from.Required(TensorField::kX);
  to.output_type = from.Type(field_number::kOutputType, "output_type");
  to.granularity = from.ReadGranularity();
  to.saturate = from.Bool(field_number::kSaturate, true);
  to.scale_type = from.Type(field_number::kScaleType, "scale_type");
  to.symmetry =
      static_cast<Symmetry>(from.Enum(field_number::kSymmetry, "symmetry", "Symmetry", 3));
  const int non_finite = from.Enum(field_number::kNonFinite, "non_finite", "NonFinite", 3);
  to.non_finite = non_finite == 2 ? NonFinite::kIgnore : NonFinite::kReject;
  to.report_error = from.Bool(field_number::kReportError, false);
  return to;
}

}  // namespace

absl::StatusOr<Request> ConvertRequest(Method method, RequestFields fields) {
  Converter converter(fields);
  Request request;
  switch (method) {
    case Method::kQuantize:
      request.parameters = ReadQuantize(converter);
      break;
    case Method::kDequantize:
      request.parameters = ReadDequantize(converter);
      break;
    case Method::kDynamicQuantize:
      request.parameters = ReadDynamicQuantize(converter);
      break;
  }
  request.output_encoding = converter.ReadOutput();
  if (!converter.status().ok()) return converter.status();
  request.packed = converter.TakePacked();
  return request;
}

}  // namespace quantd::wire
