#include "c_arguments.h"

#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>

#include "quantd/shape.h"

namespace quantd::c {
namespace {

absl::StatusOr<Shape> ToShape(const int64_t* lengths, int32_t rank, absl::string_view field) {
  if (rank < 0 || rank > QUANTD_MAX_RANK) {
    return FieldError(field, absl::StrCat(field, " has rank ", rank, ", 0 to ", QUANTD_MAX_RANK,
                                          " are possible"));
  }
  if (rank > 0 && lengths == nullptr) {
    return FieldError(field, absl::StrCat(field, " is NULL, its rank is ", rank));
  }
  return rank == 0 ? Shape() : Shape(lengths, lengths + rank);
}

absl::StatusOr<TensorView> ToTensor(const quantd_tensor& tensor, absl::string_view field) {
  absl::StatusOr<Shape> shape = ToShape(tensor.shape, tensor.rank, field);
  if (!shape.ok()) return shape.status();
  absl::StatusOr<absl::Span<uint8_t>> bytes = BytesAt(tensor.data, tensor.size, field);
  if (!bytes.ok()) return bytes.status();
  return TensorView{static_cast<DataType>(tensor.data_type), *std::move(shape), *bytes};
}

// Checks a value of an enumeration in the header with `count` values, including 0.
absl::Status CheckChoice(int32_t value, int32_t count, absl::string_view field) {
  if (value >= 0 && value < count) return absl::OkStatus();
  return FieldError(field,
                    absl::StrCat(field, " is ", value, ", 0 to ", count - 1, " are possible"));
}

// Takes a number of core.h as the core's value. kLast is the core's last one and kMax core.h's: a
// value that only one of them has is a compile error.
template <auto kLast, int kMax>
absl::Status Take(int32_t value, absl::string_view field, decltype(kLast)& to) {
  static_assert(static_cast<int>(kLast) == kMax);
  absl::Status status = CheckChoice(value, kMax + 1, field);
  if (status.ok()) to = static_cast<decltype(kLast)>(value);
  return status;
}
// The same if the core has no value for 0, which means its first one.
template <auto kLast, int kMax>
absl::Status TakeOrFirst(int32_t value, absl::string_view field, decltype(kLast)& to) {
  static_assert(static_cast<int>(kLast) + 1 == kMax);
  absl::Status status = CheckChoice(value, kMax + 1, field);
  if (status.ok()) to = static_cast<decltype(kLast)>(value == 0 ? 0 : value - 1);
  return status;
}

// core.h has all types, with the core's numbers.
constexpr int kTypes[] = {
    QUANTD_FLOAT,        QUANTD_UINT8,          QUANTD_INT8,       QUANTD_UINT16,
    QUANTD_INT16,        QUANTD_INT32,          QUANTD_FLOAT16,    QUANTD_BFLOAT16,
    QUANTD_FLOAT8E4M3FN, QUANTD_FLOAT8E4M3FNUZ, QUANTD_FLOAT8E5M2, QUANTD_FLOAT8E5M2FNUZ,
    QUANTD_UINT4,        QUANTD_INT4,           QUANTD_FLOAT4E2M1, QUANTD_FLOAT8E8M0,
    QUANTD_UINT2,        QUANTD_INT2,           QUANTD_FLOAT6E2M3, QUANTD_FLOAT6E3M2};
static_assert([] {
  if (std::size(kTypes) != kDataTypes.size()) return false;
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (kTypes[i] != static_cast<int>(kDataTypes[i].type)) return false;
  }
  return true;
}());

struct Foreign {
  bool set;
  absl::string_view field;
};

absl::Status CheckForeign(std::initializer_list<Foreign> fields, absl::string_view operation) {
  for (const Foreign& one : fields) {
    if (!one.set) continue;
    return FieldError(one.field, absl::StrCat(one.field, " is set, ", operation, " has none"));
  }
  return absl::OkStatus();
}

// Checks the common part of all three, and fills x, output_type and granularity.
template <typename Parameters>
absl::Status ReadCommon(const quantd_parameters& from, Parameters& to) {
  absl::StatusOr<Shape> shape = ToShape(from.x_shape, from.x_rank, "x_shape");
  if (!shape.ok()) return shape.status();
  to.x.data_type = static_cast<DataType>(from.x_type);
  to.x.shape = *std::move(shape);
  // Plans only use the number of bytes of x. If that can't be computed, the plan reports
  // why.
  const absl::StatusOr<int64_t> elements = ElementCount(to.x.shape, "x");
  if (elements.ok() && FindDataType(from.x_type) != nullptr) {
    to.x.bytes = {nullptr, ByteSize(to.x.data_type, *elements)};
  }
  to.output_type = static_cast<DataType>(from.output_type);
  if (absl::Status status = CheckChoice(from.has_axis, 2, "has_axis"); !status.ok()) return status;
  if (from.has_axis != 0) {
    to.granularity.axis = from.axis;
  } else if (from.axis != 0) {
    return FieldError("axis", absl::StrCat("axis is ", from.axis, ", has_axis is 0"));
  }
  to.granularity.block_size = from.block_size;
  shape = ToShape(from.block_shape, from.block_shape_rank, "block_shape");
  if (!shape.ok()) return shape.status();
  to.granularity.block_shape = *std::move(shape);
  return absl::OkStatus();
}

template <typename Parameters>
absl::Status ReadScale(const quantd_parameters& from, Parameters& to) {
  if (from.scale == nullptr) return FieldError("scale", "scale is NULL");
  absl::StatusOr<TensorView> scale = ToTensor(*from.scale, "scale");
  if (!scale.ok()) return scale.status();
  to.scale = *std::move(scale);
  if (from.zero_point == nullptr) return absl::OkStatus();
  absl::StatusOr<TensorView> zero_point = ToTensor(*from.zero_point, "zero_point");
  if (!zero_point.ok()) return zero_point.status();
  to.zero_point = *std::move(zero_point);
  return absl::OkStatus();
}

absl::Status TakeNonFinite(int32_t value, NonFinite& to) {
  return TakeOrFirst<NonFinite::kIgnore, QUANTD_NON_FINITE_IGNORE>(value, "non_finite", to);
}

// saturate and report_error.
template <typename Parameters>
absl::Status ReadOutput(const quantd_parameters& from, Parameters& to) {
  absl::Status status = CheckChoice(from.saturate, 3, "saturate");
  if (status.ok()) status = CheckChoice(from.report_error, 2, "report_error");
  to.saturate = from.saturate != QUANTD_SATURATE_OFF;
  to.report_error = from.report_error != 0;
  return status;
}

}  // namespace

absl::StatusOr<absl::Span<uint8_t>> BytesAt(const void* data, uint64_t size,
                                            absl::string_view field) {
  if (data == nullptr && size > 0) {
    return FieldError(field, absl::StrCat(field, " is NULL, its size is ", size));
  }
  const auto begin = reinterpret_cast<uintptr_t>(data);
  if (size > UINTPTR_MAX - begin) {
    return FieldError(field, absl::StrCat(field, " has size ", size, ", only ", UINTPTR_MAX - begin,
                                          " bytes can lie behind its address"));
  }
  // The same view is used for outputs; inputs are const in the interface.
  return absl::Span<uint8_t>(static_cast<uint8_t*>(const_cast<void*>(data)),
                             static_cast<size_t>(size));
}

absl::StatusOr<QuantizeParameters> ToQuantize(const quantd_parameters& parameters) {
  QuantizeParameters result;
  absl::Status status = CheckForeign({{parameters.tensor_scale != nullptr, "tensor_scale"},
                                      {parameters.scale_type != 0, "scale_type"},
                                      {parameters.symmetry != 0, "symmetry"},
                                      {parameters.non_finite != 0, "non_finite"}},
                                     "Quantize");
  if (status.ok()) status = ReadCommon(parameters, result);
  if (status.ok()) status = ReadScale(parameters, result);
  if (status.ok()) status = ReadOutput(parameters, result);
  if (status.ok()) {
    status = TakeOrFirst<ZeroPointOrder::kBeforeRounding, QUANTD_ZERO_POINT_ORDER_BEFORE_ROUNDING>(
        parameters.zero_point_order, "zero_point_order", result.zero_point_order);
  }
  if (!status.ok()) return status;
  result.precision = static_cast<DataType>(parameters.precision);
  return result;
}

absl::StatusOr<DequantizeParameters> ToDequantize(const quantd_parameters& parameters) {
  DequantizeParameters result;
  absl::Status status = CheckForeign({{parameters.saturate != 0, "saturate"},
                                      {parameters.precision != 0, "precision"},
                                      {parameters.zero_point_order != 0, "zero_point_order"},
                                      {parameters.scale_type != 0, "scale_type"},
                                      {parameters.symmetry != 0, "symmetry"},
                                      {parameters.non_finite != 0, "non_finite"},
                                      {parameters.report_error != 0, "report_error"}},
                                     "Dequantize");
  if (status.ok()) status = ReadCommon(parameters, result);
  if (status.ok()) status = ReadScale(parameters, result);
  if (!status.ok()) return status;
  if (parameters.tensor_scale != nullptr) {
    absl::StatusOr<TensorView> tensor_scale = ToTensor(*parameters.tensor_scale, "tensor_scale");
    if (!tensor_scale.ok()) return tensor_scale.status();
    result.tensor_scale = *std::move(tensor_scale);
  }
  return result;
}

absl::StatusOr<DynamicQuantizeParameters> ToDynamicQuantize(const quantd_parameters& parameters) {
  DynamicQuantizeParameters result;
  absl::Status status = CheckForeign({{parameters.scale != nullptr, "scale"},
                                      {parameters.zero_point != nullptr, "zero_point"},
                                      {parameters.tensor_scale != nullptr, "tensor_scale"},
                                      {parameters.precision != 0, "precision"},
                                      {parameters.zero_point_order != 0, "zero_point_order"}},
                                     "DynamicQuantize");
  if (status.ok()) status = ReadCommon(parameters, result);
  if (status.ok()) status = ReadOutput(parameters, result);
  if (status.ok()) {
    status = Take<Symmetry::kSymmetric, QUANTD_SYMMETRY_SYMMETRIC>(parameters.symmetry, "symmetry",
                                                                   result.symmetry);
  }
  if (status.ok()) status = TakeNonFinite(parameters.non_finite, result.non_finite);
  if (!status.ok()) return status;
  result.scale_type = static_cast<DataType>(parameters.scale_type);
  return result;
}

absl::StatusOr<QuantizeEmbeddingsParameters> ToEmbeddings(const quantd_embeddings& embeddings) {
  QuantizeEmbeddingsParameters result;
  absl::StatusOr<TensorView> x = ToTensor(
      {embeddings.x_type, embeddings.x_rank, embeddings.x_shape, embeddings.x, embeddings.x_size},
      "x");
  if (!x.ok()) return x.status();
  result.x = *std::move(x);
  if (embeddings.ranges != nullptr) {
    absl::StatusOr<TensorView> ranges = ToTensor(*embeddings.ranges, "ranges");
    if (!ranges.ok()) return ranges.status();
    result.ranges = *std::move(ranges);
  }
  absl::Status status = Take<EmbeddingRecipe::kBits, QUANTD_EMBEDDING_BITS>(
      embeddings.recipe, "recipe", result.recipe);
  if (status.ok()) status = CheckChoice(embeddings.normalize, 2, "normalize");
  if (status.ok()) status = TakeNonFinite(embeddings.non_finite, result.non_finite);
  if (status.ok()) {
    status = Take<BitOrder::kLsbFirst, QUANTD_BIT_ORDER_LSB_FIRST>(embeddings.bit_order,
                                                                   "bit_order", result.bit_order);
  }
  if (status.ok()) {
    status = Take<BitThreshold::kGreaterOrEqual, QUANTD_BIT_THRESHOLD_GREATER_OR_EQUAL>(
        embeddings.bit_threshold, "bit_threshold", result.bit_threshold);
  }
  if (status.ok()) {
    status = Take<SignedBits::kTwosComplement, QUANTD_SIGNED_BITS_TWOS_COMPLEMENT>(
        embeddings.signed_bits, "signed_bits", result.signed_bits);
  }
  if (status.ok()) status = CheckChoice(embeddings.reserved, 1, "reserved");
  if (!status.ok()) return status;
  result.output_type = static_cast<DataType>(embeddings.output_type);
  result.dimensions = embeddings.dimensions;
  result.normalize = embeddings.normalize != 0;
  result.report_error = embeddings.report != nullptr;
  return result;
}

}  // namespace quantd::c
