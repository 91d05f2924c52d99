#include "method.h"

#include <array>
#include <cmath>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "element_type.h"
#include "flags.h"
#include "quantd/values.h"
#include "scan.h"
#include "source.h"

namespace quantd::cli {
namespace {

// Names for a type together with its blocks and scales.
struct BlockFormat {
  absl::string_view name;
  DataType output, scale;
  int64_t block_size;
};
constexpr std::array kBlockFormats = {
    BlockFormat{"mxfp8", DataType::kFloat8E4M3Fn, DataType::kFloat8E8M0, 32},
    BlockFormat{"mxfp8e5m2", DataType::kFloat8E5M2, DataType::kFloat8E8M0, 32},
    BlockFormat{"mxfp4", DataType::kFloat4E2M1, DataType::kFloat8E8M0, 32},
    BlockFormat{"mxint8", DataType::kInt8, DataType::kFloat8E8M0, 32},
    BlockFormat{"nvfp4", DataType::kFloat4E2M1, DataType::kFloat8E4M3Fn, 16},
};

v1::DataType OnWire(DataType type) { return static_cast<v1::DataType>(type); }

absl::Status WrongFlag(absl::string_view flag, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, ": ", what));
}

absl::StatusOr<DataType> TypeOfFlag(const std::string& text, absl::string_view flag,
                                    DataType unset) {
  if (text.empty()) return unset;
  absl::StatusOr<DataType> type = ParseDataType(text);
  if (!type.ok()) return WrongFlag(flag, type.status().message());
  return type;
}

absl::StatusOr<std::string> Pack(DataType type, absl::Span<const float> values,
                                 absl::string_view flag) {
  absl::StatusOr<std::vector<uint8_t>> packed;
  const std::string field = absl::StrCat("--", flag);
  if (Info(type).kind == DataTypeKind::kInteger) {
    std::vector<int64_t> integers;
    for (const float value : values) {
      if (value != std::floor(value) || std::abs(value) > 1e9) {
        return WrongFlag(flag, absl::StrCat(value, " is not a whole number"));
      }
      integers.push_back(static_cast<int64_t>(value));
    }
    packed = PackIntegers(type, integers, field);
  } else {
    packed = PackFloats(type, values, field);
  }
  if (!packed.ok()) return packed.status();
  return std::string(packed->begin(), packed->end());
}

absl::StatusOr<v1::Tensor> OperandOfFile(const std::string& path, absl::string_view flag,
                                         DataType type, bool int32_allowed) {
  const absl::StatusOr<TensorFile> file = OpenTensorFile(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<Source> source = Source::Of(*file, file->tensors[0]);
  if (!source.ok()) return source.status();
  const bool both_float =
      Info(type).kind == DataTypeKind::kFloat && Info(source->type()).kind == DataTypeKind::kFloat;
  v1::Tensor tensor;
  if (source->type() == type || both_float ||
      (int32_allowed && source->type() == DataType::kInt32)) {
    SetTensor(source->type(), source->shape(), source->ReadAll(), &tensor);
    return tensor;
  }
  absl::StatusOr<std::string> packed =
      Pack(type, ToFloats(source->type(), source->elements(), source->ReadAll()), flag);
  if (!packed.ok()) return packed.status();
  SetTensor(type, source->shape(), *std::move(packed), &tensor);
  return tensor;
}

// --scale and --zero_point given.
absl::StatusOr<v1::QuantizeRequest> GivenMethod(DataType output, DataType scale_type) {
  v1::QuantizeRequest request;
  absl::StatusOr<v1::Tensor> scale =
      ParseOperand(absl::GetFlag(FLAGS_scale), "scale", scale_type, /*int32_allowed=*/true);
  if (!scale.ok()) return scale.status();
  *request.mutable_scale() = *std::move(scale);
  const std::string order = absl::GetFlag(FLAGS_zero_point_order);
  if (order != "after_rounding" && order != "before_rounding") {
    return WrongFlag("zero_point_order", "must be after_rounding or before_rounding");
  }
  const bool before = order == "before_rounding";
  if (before) request.set_zero_point_order(v1::ZERO_POINT_ORDER_BEFORE_ROUNDING);
  if (const std::string text = absl::GetFlag(FLAGS_zero_point); !text.empty()) {
    absl::StatusOr<v1::Tensor> zero_point = ParseOperand(text, "zero_point", output, before);
    if (!zero_point.ok()) return zero_point.status();
    *request.mutable_zero_point() = *std::move(zero_point);
  }
  const absl::StatusOr<DataType> precision =
      TypeOfFlag(absl::GetFlag(FLAGS_precision), "precision", DataType::kUnspecified);
  if (!precision.ok()) return precision.status();
  request.set_precision(OnWire(*precision));
  request.set_output_type(OnWire(output));
  request.set_saturate(absl::GetFlag(FLAGS_saturate));
  return request;
}

absl::StatusOr<v1::DynamicQuantizeRequest> DynamicMethod(DataType output, DataType scale_type) {
  v1::DynamicQuantizeRequest request;
  request.set_output_type(OnWire(output));
  request.set_scale_type(OnWire(scale_type));
  request.set_saturate(absl::GetFlag(FLAGS_saturate));
  if (absl::GetFlag(FLAGS_symmetric)) request.set_symmetry(v1::SYMMETRY_SYMMETRIC);
  const std::string non_finite = absl::GetFlag(FLAGS_non_finite);
  if (non_finite == "ignore") {
    request.set_non_finite(v1::NON_FINITE_IGNORE);
  } else if (non_finite != "reject") {
    return WrongFlag("non_finite", "must be reject or ignore");
  }
  if (!absl::GetFlag(FLAGS_zero_point).empty()) {
    return WrongFlag("zero_point", "goes together with --scale; without them both are found");
  }
  return request;
}

}  // namespace

absl::StatusOr<Shape> ParseShape(const std::vector<std::string>& words, absl::string_view flag) {
  Shape shape;
  for (const std::string& word : words) {
    int64_t length;
    if (!absl::SimpleAtoi(word, &length)) {
      return WrongFlag(flag, absl::StrCat("'", word, "' is not a whole number"));
    }
    shape.push_back(length);
  }
  return shape;
}

absl::StatusOr<Granularity> GranularityOfFlags() {
  Granularity granularity;
  if (const auto axis = absl::GetFlag(FLAGS_axis); axis.has_value()) granularity.axis = *axis;
  granularity.block_size = absl::GetFlag(FLAGS_block_size);
  absl::StatusOr<Shape> block_shape = ParseShape(absl::GetFlag(FLAGS_block_shape), "block_shape");
  if (!block_shape.ok()) return block_shape.status();
  granularity.block_shape = *std::move(block_shape);
  return granularity;
}

absl::StatusOr<v1::Tensor> ParseOperand(const std::string& text, absl::string_view flag,
                                        DataType type, bool int32_allowed) {
  if (absl::EndsWithIgnoreCase(text, ".npy")) {
    return OperandOfFile(text, flag, type, int32_allowed);
  }
  std::vector<float> values;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    float value;
    if (!absl::SimpleAtof(word, &value)) {
      return WrongFlag(flag, absl::StrCat("'", word, "' is neither a number nor a .npy file"));
    }
    values.push_back(value);
  }
  absl::StatusOr<std::string> packed = Pack(type, values, flag);
  if (!packed.ok()) return packed.status();
  v1::Tensor tensor;
  Shape shape;
  if (values.size() > 1) shape.push_back(static_cast<int64_t>(values.size()));
  SetTensor(type, shape, *std::move(packed), &tensor);
  return tensor;
}

absl::StatusOr<QuantizeMethod> MethodOfFlags(bool report_error) {
  absl::StatusOr<Granularity> granularity = GranularityOfFlags();
  if (!granularity.ok()) return granularity.status();
  const std::string type_name = absl::AsciiStrToLower(absl::GetFlag(FLAGS_type));
  DataType output = DataType::kUint8;
  DataType scale_default = DataType::kUnspecified;
  bool is_block_format = false;
  for (const BlockFormat& format : kBlockFormats) {
    if (format.name != type_name) continue;
    is_block_format = true;
    output = format.output;
    scale_default = format.scale;
    if (granularity->block_size == 0 && granularity->block_shape.empty()) {
      granularity->block_size = format.block_size;
      if (!granularity->axis.has_value()) granularity->axis = -1;
    }
  }
  if (!is_block_format) {
    const absl::StatusOr<DataType> type = TypeOfFlag(type_name, "type", DataType::kUint8);
    if (!type.ok()) return type.status();
    output = *type;
  }
  const absl::StatusOr<DataType> scale_type =
      TypeOfFlag(absl::GetFlag(FLAGS_scale_type), "scale_type", scale_default);
  if (!scale_type.ok()) return scale_type.status();

  QuantizeMethod method;
  if (absl::GetFlag(FLAGS_scale).empty()) {
    absl::StatusOr<v1::DynamicQuantizeRequest> request = DynamicMethod(output, *scale_type);
    if (!request.ok()) return request.status();
    SetGranularity(*granularity, &*request);
    request->set_report_error(report_error);
    method.dynamic = *std::move(request);
  } else {
    absl::StatusOr<v1::QuantizeRequest> request =
        GivenMethod(output, *scale_type == DataType::kUnspecified ? DataType::kFloat : *scale_type);
    if (!request.ok()) return request.status();
    SetGranularity(*granularity, &*request);
    request->set_report_error(report_error);
    method.given = *std::move(request);
  }
  return method;
}

PieceLimits LimitsOfFlags(const Server& server) {
  PieceLimits limits;
  limits.message_bytes = server.info().max_message_bytes();
  if (limits.message_bytes == 0) limits.message_bytes = 4 << 20;  // what gRPC itself allows
  limits.budget_bytes = server.info().memory_budget_bytes();
  limits.wanted_bytes = absl::GetFlag(FLAGS_piece_bytes);
  return limits;
}

absl::StatusOr<std::unique_ptr<Server>> ConnectByFlags(double connect_seconds) {
  return Server::Connect(absl::GetFlag(FLAGS_address), absl::Seconds(connect_seconds),
                         absl::Seconds(absl::GetFlag(FLAGS_timeout)));
}

}  // namespace quantd::cli
