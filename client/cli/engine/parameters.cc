#include "engine/parameters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "files/element_type.h"
#include "files/file_names.h"
#include "files/tensor_file.h"
#include "files/text.h"
#include "quantd/dequantize.h"
#include "quantd/values.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

// Names for combinations of a type, blocks and scales.
struct BlockFormat {
  absl::string_view name;
  DataType output, scale;
  int64_t block_size;
};
constexpr std::array kBlockFormats = {
    BlockFormat{"mxfp8", DataType::kFloat8E4M3Fn, DataType::kFloat8E8M0, 32},
    BlockFormat{"mxfp8e5m2", DataType::kFloat8E5M2, DataType::kFloat8E8M0, 32},
    BlockFormat{"mxfp6e2m3", DataType::kFloat6E2M3, DataType::kFloat8E8M0, 32},
    BlockFormat{"mxfp6e3m2", DataType::kFloat6E3M2, DataType::kFloat8E8M0, 32},
    BlockFormat{"mxfp4", DataType::kFloat4E2M1, DataType::kFloat8E8M0, 32},
    BlockFormat{"mxint8", DataType::kInt8, DataType::kFloat8E8M0, 32},
    BlockFormat{"nvfp4", DataType::kFloat4E2M1, DataType::kFloat8E4M3Fn, 16},
};

using Recipe = EmbeddingRecipe;

struct Preset {
  const char* name;
  Recipe recipe;
  DataType type;
  BitOrder order = BitOrder::kUnspecified;
  BitThreshold threshold = BitThreshold::kUnspecified;
  SignedBits signed_bits = SignedBits::kUnspecified;
};

// The formats of vector databases: the same lines as in client/python/src/quantd/embeddings.py, as
// tests/e2e checks.
constexpr Preset kPresets[] = {
    {"sentence-transformers-int8", Recipe::kRanges, DataType::kInt8},
    {"sentence-transformers-uint8", Recipe::kRanges, DataType::kUint8},
    {"sentence-transformers-binary", Recipe::kBits, DataType::kInt8},
    {"sentence-transformers-ubinary", Recipe::kBits, DataType::kUint8},
    {"cohere-binary", Recipe::kBits, DataType::kInt8},
    {"vespa", Recipe::kBits, DataType::kInt8, BitOrder::kUnspecified, BitThreshold::kUnspecified,
     SignedBits::kTwosComplement},
    {"pgvector", Recipe::kBits, DataType::kUint8},
    {"sqlite-vec-int8", Recipe::kUnit, DataType::kInt8},
    {"sqlite-vec-binary", Recipe::kBits, DataType::kUint8, BitOrder::kLsbFirst},
    {"usearch-i8", Recipe::kDirection, DataType::kInt8},
    {"vllm-binary", Recipe::kBits, DataType::kInt8, BitOrder::kUnspecified,
     BitThreshold::kGreaterOrEqual},
    {"mongodb", Recipe::kBits, DataType::kUint8},
};

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

absl::StatusOr<Operand> Pack(DataType type, absl::Span<const double> values, const Shape& shape,
                             absl::string_view flag) {
  absl::StatusOr<std::vector<uint8_t>> packed;
  const std::string field = absl::StrCat("--", flag);
  if (Info(type).kind == DataTypeKind::kInteger) {
    std::vector<int64_t> integers;
    for (const double value : values) {
      if (value != std::floor(value) || std::abs(value) > 1e10) {
        return WrongFlag(flag, absl::StrCat(value, " is not a whole number in range"));
      }
      integers.push_back(static_cast<int64_t>(value));
    }
    packed = PackIntegers(type, integers, field);
  } else {
    packed = PackFloats(type, std::vector<float>(values.begin(), values.end()), field);
  }
  if (!packed.ok()) return packed.status();
  auto bytes = std::make_shared<const std::vector<uint8_t>>(*std::move(packed));
  return Operand{{type, shape, *bytes}, bytes};
}

absl::StatusOr<Operand> OperandOfFile(const std::string& path, absl::string_view flag,
                                      DataType type, bool int32_allowed) {
  QUANTD_ASSIGN_OR_RETURN(const TensorFile file, OpenTensorFile(path));
  QUANTD_ASSIGN_OR_RETURN(const Operand operand, ValuesOf(file, file.tensors[0], ScratchPath()));
  const TensorView& view = operand.view;
  const bool both_float =
      Info(type).kind == DataTypeKind::kFloat && Info(view.data_type).kind == DataTypeKind::kFloat;
  if (view.data_type == type || both_float ||
      (int32_allowed && view.data_type == DataType::kInt32)) {
    return operand;
  }
  const int64_t elements = ElementCount(view.shape, flag).value_or(0);
  return Pack(type, ToDoubles(ElementTypeOf(view.data_type), elements, view.bytes), view.shape,
              flag);
}

// The type of the codes that go with a zero point in a file; `unset` if its type is none of theirs.
absl::StatusOr<DataType> TypeOfZeroPoint(const std::string& text, DataType unset) {
  if (!absl::EndsWithIgnoreCase(text, ".npy")) return unset;
  QUANTD_ASSIGN_OR_RETURN(const TensorFile file, OpenTensorFile(text));
  const DataType type = file.tensors[0].type->data_type;
  return type == DataType::kUnspecified || type == DataType::kInt32 ||
                 Info(type).kind != DataTypeKind::kInteger
             ? unset
             : type;
}

// Elements that are dequantized at a time: few, but enough for every thread.
constexpr int64_t kElements = 1 << 20;

}  // namespace

Granularity SpecFlags::granularity() const {
  return {axis, block_size, Shape(block_shape.begin(), block_shape.end())};
}

absl::StatusOr<Operand> ParseOperand(const std::string& text, absl::string_view flag, DataType type,
                                     bool int32_allowed) {
  if (absl::EndsWithIgnoreCase(text, ".npy")) {
    return OperandOfFile(text, flag, type, int32_allowed);
  }
  std::vector<double> values;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    float value;
    if (!absl::SimpleAtof(word, &value)) {
      return WrongFlag(flag, absl::StrCat("'", word, "' is neither a number nor a .npy file"));
    }
    values.push_back(value);
  }
  Shape shape;
  if (values.size() > 1) shape.push_back(static_cast<int64_t>(values.size()));
  return Pack(type, values, shape, flag);
}

absl::StatusOr<QuantizationSpec> QuantizationSpec::Of(const SpecFlags& flags) {
  QuantizationSpec spec;
  DynamicQuantizeParameters& dynamic = spec.dynamic_;
  dynamic.granularity = flags.granularity();
  const std::string name = PlainTypeName(flags.type);
  const auto format = std::find_if(kBlockFormats.begin(), kBlockFormats.end(),
                                   [&name](const BlockFormat& row) { return row.name == name; });
  DataType scale_type = DataType::kUnspecified;
  if (format != kBlockFormats.end()) {
    dynamic.output_type = format->output;
    scale_type = format->scale;
    if (flags.block_size == 0 && flags.block_shape.empty()) {
      dynamic.granularity.block_size = format->block_size;
      if (!flags.axis.has_value()) dynamic.granularity.axis = -1;
    }
  } else {
    const absl::StatusOr<DataType> type =
        TypeOfFlag(name, "type", flags.symmetric ? DataType::kInt8 : DataType::kUint8);
    if (!type.ok()) {
      std::vector<std::string> names = DataTypeNames();
      for (const BlockFormat& row : kBlockFormats) names.emplace_back(row.name);
      return WrongFlag(
          "type", absl::StrCat("'", flags.type, "' is not a data type", DidYouMean(name, names),
                               "; use one of: ", absl::StrJoin(QuantizedTypeNames(true), ", ")));
    }
    dynamic.output_type = *type;
  }
  QUANTD_ASSIGN_OR_RETURN(const DataType scale,
                          TypeOfFlag(flags.scale_type, "scale_type", scale_type));
  if (flags.type.empty() && !flags.symmetric) {
    QUANTD_ASSIGN_OR_RETURN(dynamic.output_type,
                            TypeOfZeroPoint(flags.zero_point, dynamic.output_type));
  }
  dynamic.scale_type = scale;
  dynamic.saturate = flags.saturate;
  dynamic.report_error = flags.report_error;
  if (flags.symmetric) dynamic.symmetry = Symmetry::kSymmetric;
  if (flags.non_finite == "ignore") dynamic.non_finite = NonFinite::kIgnore;
  if (flags.scale.empty()) {
    if (flags.zero_point.empty()) return spec;
    return WrongFlag("zero_point", "goes together with --scale; without them both are found");
  }

  GivenScales given;
  QUANTD_ASSIGN_OR_RETURN(
      given.scale, ParseOperand(flags.scale, "scale",
                                scale == DataType::kUnspecified ? DataType::kFloat : scale, true));
  if (!flags.zero_point.empty()) {
    const bool before = flags.zero_point_order == "before_rounding";
    QUANTD_ASSIGN_OR_RETURN(given.zero_point, ParseOperand(flags.zero_point, "zero_point",
                                                           dynamic.output_type, before));
  }
  QUANTD_RETURN_IF_ERROR(spec.Take(flags, std::move(given)));
  return spec;
}

absl::Status QuantizationSpec::Take(const SpecFlags& flags, GivenScales scales) {
  scales_ = std::move(scales);
  QuantizeParameters& given = given_.emplace();
  given.scale = scales_.scale.view;
  if (scales_.zero_point.has_value()) given.zero_point = scales_.zero_point->view;
  given.output_type = dynamic_.output_type;
  given.granularity = dynamic_.granularity;
  given.saturate = flags.saturate;
  given.report_error = flags.report_error;
  if (flags.zero_point_order == "before_rounding") {
    given.zero_point_order = ZeroPointOrder::kBeforeRounding;
  }
  QUANTD_ASSIGN_OR_RETURN(given.precision,
                          TypeOfFlag(flags.precision, "precision", DataType::kUnspecified));
  return absl::OkStatus();
}

absl::StatusOr<QuantizationSpec> QuantizationSpec::Of(const SpecFlags& flags, GivenScales given) {
  const std::pair<absl::string_view, bool> said[] = {{"scale", !flags.scale.empty()},
                                                     {"zero_point", !flags.zero_point.empty()},
                                                     {"axis", flags.axis.has_value()},
                                                     {"block_size", flags.block_size != 0},
                                                     {"block_shape", !flags.block_shape.empty()},
                                                     {"scale_type", !flags.scale_type.empty()},
                                                     {"symmetric", flags.symmetric},
                                                     {"non_finite", flags.non_finite != "reject"}};
  for (const auto& [flag, is_said] : said) {
    if (is_said) return WrongFlag(flag, "a --calibration goes without it, and has its own scales");
  }
  QUANTD_ASSIGN_OR_RETURN(QuantizationSpec spec, Of(flags));
  if (!flags.type.empty() && spec.dynamic_.output_type != given.type) {
    return WrongFlag("type", absl::StrCat("'", flags.type, "' is not that of --calibration, ",
                                          TypeName(given.type)));
  }
  spec.dynamic_.output_type = given.type;
  spec.dynamic_.granularity = {given.axis, 0, {}};
  QUANTD_RETURN_IF_ERROR(spec.Take(flags, std::move(given)));
  return spec;
}

std::vector<std::string> QuantizedTypeNames(bool has_formats) {
  std::vector<std::string> names;
  for (const DataTypeInfo& info : kDataTypes) {
    const bool is_integer = info.kind == DataTypeKind::kInteger && info.type != DataType::kInt32;
    if (is_integer || info.kind == DataTypeKind::kFloat8 || info.kind == DataTypeKind::kMiniFloat) {
      names.push_back(TypeName(info.type));
    }
  }
  if (!has_formats) return names;
  for (const BlockFormat& row : kBlockFormats) names.emplace_back(row.name);
  return names;
}

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

absl::StatusOr<QuantizeEmbeddingsParameters> PresetOf(absl::string_view name) {
  for (const Preset& preset : kPresets) {
    if (name != preset.name) continue;
    QuantizeEmbeddingsParameters parameters;
    parameters.recipe = preset.recipe;
    parameters.output_type = preset.type;
    parameters.bit_order = preset.order;
    parameters.bit_threshold = preset.threshold;
    parameters.signed_bits = preset.signed_bits;
    return parameters;
  }
  return absl::InvalidArgumentError(absl::StrCat("--preset: no preset '", name, "'",
                                                 DidYouMean(name, PresetNames()), "; use ",
                                                 absl::StrJoin(PresetNames(), ", ")));
}

Parameters QuantizationSpec::ParametersFor(const TensorView& x) const {
  Parameters parameters = given_.has_value() ? Parameters(*given_) : Parameters(dynamic_);
  std::visit([&x](auto& each) { each.x = x; }, parameters);
  return parameters;
}

absl::StatusOr<ResultLayout> QuantizationSpec::LayoutFor(const TensorView& x) const {
  QUANTD_ASSIGN_OR_RETURN(
      const OperationPlan plan,
      std::visit([](const auto& each) { return MakePlan(each); }, ParametersFor(x)));
  ResultLayout layout = LayoutOf(plan);
  if (!given_.has_value()) return layout;
  const auto layout_of = [](const TensorView& view) {
    return TensorLayout{.data_type = view.data_type, .shape = view.shape};
  };
  layout.y_scale = layout_of(given_->scale);
  if (given_->zero_point.has_value()) layout.y_zero_point = layout_of(*given_->zero_point);
  return layout;
}

absl::Status QuantizationSpec::CheckSigns(const TensorView& x) const {
  const DataType output = dynamic_.output_type;
  const bool is_unsigned = Info(output).kind == DataTypeKind::kInteger && Info(output).minimum == 0;
  if (given_.has_value() || dynamic_.symmetry != Symmetry::kSymmetric || !is_unsigned) {
    return absl::OkStatus();
  }
  const auto count = [&x](auto sign, auto infinity) {
    using Bits = decltype(sign);
    size_t negative = 0;
    Bits value;
    for (size_t i = 0; i + sizeof(value) <= x.bytes.size(); i += sizeof(value)) {
      std::memcpy(&value, x.bytes.data() + i, sizeof(value));
      negative += value > sign && static_cast<Bits>(value - sign) <= infinity;
    }
    return negative;
  };
  const size_t negative =
      x.data_type == DataType::kFloat     ? count(uint32_t{1} << 31, uint32_t{0x7F800000})
      : x.data_type == DataType::kFloat16 ? count(uint16_t{0x8000}, uint16_t{0x7C00})
                                          : count(uint16_t{0x8000}, uint16_t{0x7F80});
  if (negative == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      negative, " negative values would be lost: --symmetric ", Name(output),
      " has no negative codes, so they become 0; use a signed --type, or leave out --symmetric"));
}

absl::Status QuantizationSpec::Run(Engine& engine, const TensorView& x,
                                   const DynamicQuantizeOutput& output,
                                   QuantizationError* error) const {
  if (given_.has_value()) {
    std::ranges::copy(given_->scale.bytes, output.scale.begin());
    if (given_->zero_point.has_value()) {
      std::ranges::copy(given_->zero_point->bytes, output.zero_point.begin());
    }
  }
  return engine.Run(ParametersFor(x), output, error);
}

TensorView QuantizedParts::Take(absl::StatusOr<Operand> operand, absl::Status* status) {
  status->Update(operand.status());
  if (!operand.ok()) return {};
  owners_.push_back(std::move(operand->owner));
  return std::move(operand->view);
}

absl::StatusOr<QuantizedParts> QuantizedParts::Of(const QuantizedTensor& tensor,
                                                  const std::string& path) {
  QuantizedParts parts;
  DequantizeParameters& p = parts.parameters_;
  p.granularity = tensor.entry.granularity;
  absl::Status status;
  const auto add = [&](const Source& source) { return parts.Take(source.View(path), &status); };
  p.x = add(tensor.y);
  p.scale = add(tensor.scale);
  if (tensor.zero_point.has_value()) p.zero_point = add(*tensor.zero_point);
  if (tensor.tensor_scale.has_value()) p.tensor_scale = add(*tensor.tensor_scale);
  if (!status.ok()) return status;
  return parts;
}

absl::StatusOr<QuantizedParts> QuantizedParts::Of(const Source& x, const SpecFlags& flags,
                                                  const std::string& path) {
  QuantizedParts parts;
  DequantizeParameters& p = parts.parameters_;
  p.granularity = flags.granularity();
  absl::Status status;
  p.x = parts.Take(x.View(path), &status);
  const auto add = [&](const std::string& text, absl::string_view flag, DataType type,
                       bool int32_allowed) -> std::optional<TensorView> {
    if (text.empty()) return std::nullopt;
    return parts.Take(ParseOperand(text, flag, type, int32_allowed), &status);
  };
  p.scale = add(flags.scale, "scale", DataType::kFloat, true).value_or(TensorView());
  p.zero_point = add(flags.zero_point, "zero_point", x.type(), true);
  p.tensor_scale = add(flags.tensor_scale, "tensor_scale", DataType::kFloat, false);
  if (!status.ok()) return status;
  return parts;
}

absl::Status CompareWith(
    const Executor& executor, const DequantizeParameters& quantized, const TensorView& x,
    absl::FunctionRef<void(absl::Span<const double> before, absl::Span<const double> after)>
        visit) {
  if (x.shape != quantized.x.shape) {
    return absl::InvalidArgumentError(absl::StrCat("it has shape ", ShapeString(quantized.x.shape),
                                                   ", the original ", ShapeString(x.shape)));
  }
  DequantizeParameters request = quantized;
  request.output_type = DataType::kFloat;
  QUANTD_ASSIGN_OR_RETURN(const DequantizePlan plan, PlanDequantize(request));
  const int64_t bits = Info(x.data_type).bits;
  std::vector<float> floats;
  for (int64_t begin = 0; begin < plan.elements; begin += kElements) {
    const int64_t end = std::min(begin + kElements, plan.elements);
    floats.resize(end - begin);
    absl::Status status = DequantizeElements(
        plan, request.x.bytes, begin, end, executor, [] { return false; },
        {reinterpret_cast<uint8_t*>(floats.data()), floats.size() * sizeof(float)});
    if (!status.ok()) return status;
    visit(ToDoubles(ElementTypeOf(x.data_type), end - begin,
                    x.bytes.subspan(begin * bits / 8, (end - begin) * bits / 8)),
          std::vector<double>(floats.begin(), floats.end()));
  }
  return absl::OkStatus();
}

}  // namespace quantd::cli
