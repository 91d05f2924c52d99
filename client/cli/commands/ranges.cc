#include "commands/ranges.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "files/element_type.h"
#include "quantd/values.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

constexpr std::array<const char*, 4> kMethodNames = {"min_max", "percentile", "entropy", "mse"};

// The most memory for bins, if there are very many channels.
constexpr uint64_t kMostCalibratorBytes = uint64_t{1} << 30;

absl::Status Fits(const absl::StatusOr<uint64_t>& bytes) {
  if (!bytes.ok() || *bytes <= kMostCalibratorBytes) return bytes.status();
  return absl::ResourceExhaustedError(absl::StrCat("these channels would take ", *bytes, " bytes, ",
                                                   kMostCalibratorBytes, " are allowed"));
}

void CopyFloats(const std::vector<float>& from, absl::Span<uint8_t> to) {
  if (!to.empty()) std::memcpy(to.data(), from.data(), to.size());
}

// A tensor of a file that calibrate has written; INVALID_ARGUMENT if there is none with this name.
absl::StatusOr<const StoredTensor*> FindCalibrated(const TensorFile& file, absl::string_view name) {
  for (const StoredTensor& tensor : file.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(file.path, " has no tensor '", name, "'; quantctl calibrate writes one"));
}

}  // namespace

absl::StatusOr<Operand> OpenInput(const std::string& path, const std::string& output) {
  QUANTD_ASSIGN_OR_RETURN(const TensorFile file, OpenTensorFile(path));
  if (file.format == FileFormat::kNpy) return ValuesOf(file, file.tensors[0], output);
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is not a .npy file; embeddings are read from these"));
}

absl::Status AddValues(const TensorView& x, const Executor& executor, Calibrator* calibrator) {
  QUANTD_RETURN_IF_ERROR(Fits(calibrator->BytesWith(x)));
  return calibrator->Add(x, executor, [] { return false; });
}

absl::Status AddState(absl::Span<const uint8_t> state, Calibrator* calibrator) {
  QUANTD_RETURN_IF_ERROR(Fits(calibrator->BytesWithState(state)));
  return calibrator->Merge(state);
}

Json CalibrationJson(const Calibration& calibration, const CalibrationOptions& options) {
  Json json = {{"method", kMethodNames[static_cast<size_t>(options.method)]},
               {"type", TypeName(options.output_type)}};
  if (options.method == CalibrationMethod::kPercentile) {
    json["percentile"] = options.percentile == 0 ? 99.99 : options.percentile;
  }
  json["symmetry"] = options.symmetry == Symmetry::kSymmetric || !calibration.has_zero_point
                         ? "symmetric"
                         : "asymmetric";
  if (options.axis.has_value()) json["axis"] = *options.axis;
  json["non_finite"] = options.non_finite == NonFinite::kIgnore ? "ignore" : "reject";
  json["elements"] = calibration.elements;
  json["non_finite_elements"] = calibration.non_finite_elements;
  return json;
}

RangesParts AddRanges(const Calibration& calibration, const CalibrationOptions& options,
                      Output* output) {
  RangesParts parts;
  parts.range = output->Add("range", "", DataType::kFloat, calibration.range_shape);
  parts.scale = output->Add("scale", "scale", DataType::kFloat, calibration.shape);
  if (calibration.has_zero_point) {
    parts.zero_point =
        output->Add("zero_point", "zero_point", options.output_type, calibration.shape);
  }
  output->SetMetadata(kCalibrationKey, CalibrationJson(calibration, options).dump());
  return parts;
}

void FillRanges(const Calibration& calibration, const CalibrationOptions& options,
                const RangesParts& parts, Output* output) {
  CopyFloats(calibration.range, output->bytes(parts.range));
  CopyFloats(calibration.scale, output->bytes(parts.scale));
  if (!parts.zero_point.has_value()) return;
  const std::vector<int64_t> values(calibration.zero_point.begin(), calibration.zero_point.end());
  // They are in range of the type.
  const std::vector<uint8_t> packed = *PackIntegers(options.output_type, values, "zero_point");
  const absl::Span<uint8_t> to = output->bytes(*parts.zero_point);
  std::copy_n(packed.begin(), std::min(packed.size(), to.size()), to.begin());
}

absl::StatusOr<GivenScales> ReadCalibration(const std::string& path) {
  if (!absl::EndsWithIgnoreCase(path, ".safetensors")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--calibration: ", path, " is not the .safetensors of quantctl calibrate"));
  }
  QUANTD_ASSIGN_OR_RETURN(TensorFile opened, OpenTensorFile(path));
  const auto file = std::make_shared<const TensorFile>(std::move(opened));  // owns the bytes
  const auto described = file->metadata.find(kCalibrationKey);
  const Json json = described == file->metadata.end()
                        ? Json()
                        : Json::parse(described->second, nullptr, /*allow_exceptions=*/false);
  const auto type = json.is_object() ? json.find("type") : json.end();
  if (!json.is_object() || type == json.end() || !type->is_string()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--calibration: ", path,
                     " does not say for which type it is: it is not of quantctl "
                     "calibrate"));
  }
  GivenScales given;
  QUANTD_ASSIGN_OR_RETURN(given.type, ParseDataType(type->get<std::string>()));
  const auto axis = json.find("axis");
  if (axis != json.end() && axis->is_number_integer()) given.axis = axis->get<int64_t>();
  QUANTD_ASSIGN_OR_RETURN(const StoredTensor* scale, FindCalibrated(*file, "scale"));
  QUANTD_ASSIGN_OR_RETURN(const Source scales, Source::Of(*file, *scale));
  const auto operand = [&file](DataType type_of, const StoredTensor& tensor, const Shape& shape) {
    return Operand{{type_of, shape, file->Bytes(tensor)}, file};
  };
  given.scale = operand(scales.type(), *scale, scale->shape);
  const absl::StatusOr<const StoredTensor*> zero_point = FindCalibrated(*file, "zero_point");
  if (!zero_point.ok()) return given;
  // A type without a name in files is packed; the shape is that of the scale.
  const int64_t elements = ElementCount(scale->shape, "scale").value_or(0);
  if ((*zero_point)->byte_size != ByteSize(given.type, elements)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--calibration: zero_point of ", path, " has ", (*zero_point)->byte_size, " bytes, ",
        elements, " of ", TypeName(given.type), " have ", ByteSize(given.type, elements)));
  }
  given.zero_point = operand(given.type, **zero_point, scale->shape);
  return given;
}

absl::StatusOr<Operand> OpenRanges(const std::string& path, const std::string& output) {
  if (!absl::EndsWithIgnoreCase(path, ".safetensors")) return OpenInput(path, output);
  QUANTD_ASSIGN_OR_RETURN(const TensorFile file, OpenTensorFile(path));
  QUANTD_ASSIGN_OR_RETURN(const StoredTensor* range, FindCalibrated(file, "range"));
  return ValuesOf(file, *range, output);
}

}  // namespace quantd::cli
