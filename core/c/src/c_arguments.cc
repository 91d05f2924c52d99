#include "c_arguments.h"

#include <initializer_list>
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
  if (status.ok()) status = CheckChoice(parameters.zero_point_order, 3, "zero_point_order");
  if (!status.ok()) return status;
  result.precision = static_cast<DataType>(parameters.precision);
  if (parameters.zero_point_order == QUANTD_ZERO_POINT_ORDER_BEFORE_ROUNDING) {
    result.zero_point_order = ZeroPointOrder::kBeforeRounding;
  }
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
  if (status.ok()) status = CheckChoice(parameters.symmetry, 3, "symmetry");
  if (status.ok()) status = CheckChoice(parameters.non_finite, 3, "non_finite");
  if (!status.ok()) return status;
  result.scale_type = static_cast<DataType>(parameters.scale_type);
  if (parameters.symmetry == QUANTD_SYMMETRY_ASYMMETRIC) result.symmetry = Symmetry::kAsymmetric;
  if (parameters.symmetry == QUANTD_SYMMETRY_SYMMETRIC) result.symmetry = Symmetry::kSymmetric;
  if (parameters.non_finite == QUANTD_NON_FINITE_IGNORE) result.non_finite = NonFinite::kIgnore;
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
  absl::Status status = CheckChoice(embeddings.recipe, 5, "recipe");
  if (status.ok()) status = CheckChoice(embeddings.normalize, 2, "normalize");
  if (status.ok()) status = CheckChoice(embeddings.non_finite, 3, "non_finite");
  if (status.ok()) status = CheckChoice(embeddings.bit_order, 3, "bit_order");
  if (status.ok()) status = CheckChoice(embeddings.bit_threshold, 3, "bit_threshold");
  if (status.ok()) status = CheckChoice(embeddings.signed_bits, 3, "signed_bits");
  if (status.ok()) status = CheckChoice(embeddings.reserved, 1, "reserved");
  if (!status.ok()) return status;
  // The numbers are those of the core's enumerations.
  result.recipe = static_cast<EmbeddingRecipe>(embeddings.recipe);
  result.output_type = static_cast<DataType>(embeddings.output_type);
  result.dimensions = embeddings.dimensions;
  result.normalize = embeddings.normalize != 0;
  result.bit_order = static_cast<BitOrder>(embeddings.bit_order);
  result.bit_threshold = static_cast<BitThreshold>(embeddings.bit_threshold);
  result.signed_bits = static_cast<SignedBits>(embeddings.signed_bits);
  if (embeddings.non_finite == QUANTD_NON_FINITE_IGNORE) result.non_finite = NonFinite::kIgnore;
  result.report_error = embeddings.report != nullptr;
  return result;
}

}  // namespace quantd::c
