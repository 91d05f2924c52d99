// quantctl calibrate: computes scale, zero point and range from files of values.
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "commands/commands.h"
#include "commands/ranges.h"
#include "engine/errors.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

absl::StatusOr<CalibrationOptions> OptionsOf(const Options& options) {
  const CalibrateFlags& flags = options.calibrate;
  CalibrationOptions to;
  to.method = flags.method == "percentile" ? CalibrationMethod::kPercentile
              : flags.method == "entropy"  ? CalibrationMethod::kEntropy
              : flags.method == "mse"      ? CalibrationMethod::kMse
                                           : CalibrationMethod::kMinMax;
  const absl::StatusOr<DataType> type =
      ParseDataType(options.spec.type.empty() ? "uint8" : options.spec.type);
  if (!type.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--type: ", type.status().message()));
  }
  to.output_type = *type;
  to.symmetry = flags.symmetry == "symmetric"    ? Symmetry::kSymmetric
                : flags.symmetry == "asymmetric" ? Symmetry::kAsymmetric
                                                 : Symmetry::kDefault;
  to.axis = options.spec.axis;
  to.percentile = flags.percentile;
  if (options.spec.non_finite == "ignore") to.non_finite = NonFinite::kIgnore;
  return to;
}

// Adds the states and the values of the files.
class Reader {
 public:
  Reader(const Options& options, const Executor& executor, Calibrator* calibrator)
      : options_(options), executor_(executor), calibrator_(*calibrator) {}

  absl::Status AddAll() {
    for (const std::string& path : options_.calibrate.states) {
      QUANTD_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
      const absl::Status added = AddState(file->bytes(), &calibrator_);
      if (!added.ok()) return OperationError(added, "calibrate", path);
    }
    Progress progress(!options_.quiet, options_.calibrate.inputs.size());
    for (const std::string& path : options_.calibrate.inputs) {
      progress.SetLabel(path);
      if (absl::EndsWithIgnoreCase(path, ".safetensors")) {
        QUANTD_RETURN_IF_ERROR(AddSafetensors(path));
      } else {
        QUANTD_RETURN_IF_ERROR(Add(OpenInput(path, options_.output), path));
      }
      progress.Add(1);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Add(const absl::StatusOr<Operand>& input, const std::string& name) {
    if (!input.ok()) return input.status();
    const absl::Status added = AddValues(input->view, executor_, &calibrator_);
    return added.ok() ? added : OperationError(added, "calibrate", name);
  }

  // Adds the tensors that --only and --skip select; without these flags there must be exactly one.
  absl::Status AddSafetensors(const std::string& path) {
    QUANTD_ASSIGN_OR_RETURN(const Choice choice, ChoiceOf(options_));
    QUANTD_ASSIGN_OR_RETURN(const TensorFile file, OpenTensorFile(path));
    std::vector<const StoredTensor*> chosen;
    for (const StoredTensor& tensor : file.tensors) {
      if (choice.SkipReason(tensor.name).empty()) chosen.push_back(&tensor);
    }
    const bool free = options_.only.empty() && options_.skip.empty();
    if (chosen.empty() || (free && chosen.size() > 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " has ", chosen.size(), " tensors", free ? "" : " of these names",
                       ": a calibration is of one quantity, choose its tensors with --only"));
    }
    for (const StoredTensor* tensor : chosen) {
      QUANTD_RETURN_IF_ERROR(
          Add(ValuesOf(file, *tensor, options_.output), absl::StrCat(path, ": ", tensor->name)));
    }
    return absl::OkStatus();
  }

  const Options& options_;
  const Executor& executor_;
  Calibrator& calibrator_;
};

absl::Status CheckRangesFiles(const Options& options, const CalibrationOptions& what) {
  std::vector<absl::string_view> suffixes = {"scale"};
  if (Info(what.output_type).kind == DataTypeKind::kInteger) suffixes.push_back("zero_point");
  absl::Status status = CheckFiles(options, OutputsOf(FilesOfOutput(options.output, suffixes)));
  if (!status.ok() || *FormatOfPath(options.output) != FileFormat::kNpy) return status;
  return CheckMayRemoveDescription(options.output, options.force);
}

std::string ToText(const Calibration& calibration, const Json& found) {
  const Extent scale = ExtentOf(
      DataType::kFloat, calibration.shape,
      {reinterpret_cast<const uint8_t*>(calibration.scale.data()), 4 * calibration.scale.size()});
  std::string text = absl::StrCat(
      found["method"].get<std::string>(), " for ", found["type"].get<std::string>(), ": ",
      calibration.elements, " values, ", calibration.scale.size(),
      calibration.scale.size() == 1 ? " channel" : " channels", ", scale ", scale.minimum);
  if (scale.minimum != scale.maximum) absl::StrAppend(&text, " to ", scale.maximum);
  if (calibration.non_finite_elements > 0) {
    absl::StrAppend(&text, ", ", calibration.non_finite_elements, " not finite, left out");
  }
  return absl::StrCat(text, "\n");
}

}  // namespace

absl::Status RunCalibrate(const Options& options) {
  const absl::Time start = absl::Now();
  QUANTD_RETURN_IF_ERROR(FormatOfPath(options.output).status());
  QUANTD_ASSIGN_OR_RETURN(const CalibrationOptions what, OptionsOf(options));
  if (options.calibrate.inputs.empty() && options.calibrate.states.empty()) {
    return absl::InvalidArgumentError("no FILE and no --state: there is nothing to calibrate");
  }
  // Checked before an hour's work, not after it.
  QUANTD_RETURN_IF_ERROR(CheckRangesFiles(options, what));
  QUANTD_RETURN_IF_ERROR(SelectSimd(options.simd));
  absl::StatusOr<Calibrator> calibrator = Calibrator::Create(what);
  if (!calibrator.ok()) return OperationError(calibrator.status(), "calibrate", "");
  const Executor executor(options.threads);
  QUANTD_RETURN_IF_ERROR(Reader(options, executor, &*calibrator).AddAll());
  const absl::StatusOr<Calibration> result = calibrator->Result(executor, [] { return false; });
  if (!result.ok()) return OperationError(result.status(), "calibrate", "");

  Output output(options.output);
  const RangesParts parts = AddRanges(*result, what, &output);
  if (!options.calibrate.state_out.empty()) {
    output.AddText(options.calibrate.state_out, calibrator->State());
  }
  QUANTD_RETURN_IF_ERROR(Begin(options, {}, &output));
  FillRanges(*result, what, parts, &output);
  Json document = {{"inputs", options.calibrate.inputs}, {"output", options.output}};
  const Json found = CalibrationJson(*result, what);
  document.update(found);
  document["channels"] = result->scale.size();
  document["seconds"] = absl::ToDoubleSeconds(absl::Now() - start);
  return Finish(options, &output, document, ToText(*result, found));
}

}  // namespace quantd::cli
