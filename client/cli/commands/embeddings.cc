// quantctl embeddings quantize: converts a file of embeddings to a .npy with codes for a vector
// database.
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "commands/commands.h"
#include "commands/ranges.h"
#include "commands/report.h"
#include "engine/errors.h"
#include "engine/parameters.h"
#include "files/output.h"
#include "quantd/quantize_embeddings.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

// The path for the ranges found by --calibrate.
std::string RangesPath(const Options& options) {
  if (!options.embeddings.ranges_out.empty()) return options.embeddings.ranges_out;
  return absl::StrCat(options.output.substr(0, options.output.size() - 4), ".ranges.safetensors");
}

absl::Status CheckCalibrate(const Options& options, const QuantizeEmbeddingsParameters& preset) {
  const EmbeddingFlags& flags = options.embeddings;
  const auto wrong = [](absl::string_view text) { return absl::InvalidArgumentError(text); };
  if (!flags.calibrate) {
    return flags.ranges_out.empty() ? absl::OkStatus() : wrong("--ranges_out is for --calibrate");
  }
  if (!flags.ranges.empty()) return wrong("--calibrate finds what --ranges gives: leave one out");
  if (preset.recipe != EmbeddingRecipe::kRanges) {
    return wrong(absl::StrCat("--calibrate: --preset=", flags.preset, " has no ranges"));
  }
  if (flags.normalize) {
    return wrong("--calibrate sees the embeddings as they are in the file, before --normalize");
  }
  const std::string path = RangesPath(options);
  QUANTD_ASSIGN_OR_RETURN(const FileFormat format, FormatOfPath(path));
  return format == FileFormat::kSafetensors
             ? absl::OkStatus()
             : wrong(absl::StrCat(path, ": ranges are written as a .safetensors"));
}

// Errors that would occur after the work: two flags with the same file, and existing files.
absl::Status CheckCodesFiles(const Options& options) {
  std::vector<NamedFile> outputs = OutputsOf(FilesOfOutput(options.output, {}));
  if (options.embeddings.calibrate) outputs.push_back({"--ranges_out", RangesPath(options)});
  absl::Status status = CheckFiles(options, std::move(outputs));
  return status.ok() ? CheckMayRemoveDescription(options.output, options.force) : status;
}

// The lowest and highest value of each dimension.
absl::StatusOr<Calibration> FindRanges(const TensorView& x, const CalibrationOptions& what,
                                       const Options& options) {
  QUANTD_RETURN_IF_ERROR(SelectSimd(options.simd));
  const Executor executor(options.threads);
  absl::StatusOr<Calibrator> calibrator = Calibrator::Create(what);
  absl::Status status = calibrator.status();
  if (status.ok()) status = AddValues(x, executor, &*calibrator);
  if (!status.ok()) return OperationError(status, "calibrate", "");
  absl::StatusOr<Calibration> found = calibrator->Result(executor, [] { return false; });
  return found.ok() ? found : OperationError(found.status(), "calibrate", "");
}

// For the first dimensions, if not all are used.
TensorView ViewOf(const Calibration& calibration, int64_t dimensions, std::vector<float>* kept) {
  const int64_t all = calibration.range_shape[1];
  const int64_t used = dimensions > 0 && dimensions < all ? dimensions : all;
  kept->clear();
  for (const int64_t row : {int64_t{0}, all}) {
    kept->insert(kept->end(), calibration.range.begin() + row,
                 calibration.range.begin() + row + used);
  }
  return {DataType::kFloat,
          {2, used},
          {reinterpret_cast<const uint8_t*>(kept->data()), kept->size() * sizeof(float)}};
}

// From the preset and its flags.
absl::StatusOr<QuantizeEmbeddingsParameters> ParametersOf(const Options& options) {
  const EmbeddingFlags& flags = options.embeddings;
  QUANTD_ASSIGN_OR_RETURN(QuantizeEmbeddingsParameters parameters, PresetOf(flags.preset));
  parameters.dimensions = flags.dimensions;
  parameters.normalize = flags.normalize;
  if (options.spec.non_finite == "ignore") parameters.non_finite = NonFinite::kIgnore;
  return parameters;
}

}  // namespace

absl::Status RunEmbeddings(const Options& options) {
  QUANTD_ASSIGN_OR_RETURN(const FileFormat format, FormatOfPath(options.output));
  if (format != FileFormat::kNpy) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.output, ": codes of embeddings are written as a .npy"));
  }
  QUANTD_ASSIGN_OR_RETURN(QuantizeEmbeddingsParameters parameters, ParametersOf(options));
  QUANTD_RETURN_IF_ERROR(CheckCalibrate(options, parameters));
  QUANTD_RETURN_IF_ERROR(CheckCodesFiles(options));
  Operand ranges;
  QUANTD_ASSIGN_OR_RETURN(const Operand x, OpenInput(options.input, options.output));
  parameters.x = x.view;
  if (!options.embeddings.ranges.empty()) {
    QUANTD_ASSIGN_OR_RETURN(ranges, OpenRanges(options.embeddings.ranges, options.output));
    parameters.ranges = ranges.view;
  }
  parameters.report_error =
      options.spec.report_error && parameters.recipe != EmbeddingRecipe::kBits;
  QUANTD_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, EngineOf(options));
  CalibrationOptions what;
  what.output_type =
      parameters.output_type == DataType::kUnspecified ? DataType::kUint8 : parameters.output_type;
  what.axis = -1;
  what.non_finite = parameters.non_finite;
  absl::StatusOr<Calibration> found;
  std::vector<float> kept;
  if (options.embeddings.calibrate) {
    found = FindRanges(x.view, what, options);
    if (!found.ok()) return found.status();
    parameters.ranges = ViewOf(*found, parameters.dimensions, &kept);
  }
  if (parameters.recipe == EmbeddingRecipe::kRanges && !parameters.ranges.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--preset=", options.embeddings.preset,
        " needs ranges: give them with --ranges=FILE, or find them in this file with --calibrate"));
  }
  const absl::StatusOr<QuantizeEmbeddingsPlan> plan = PlanQuantizeEmbeddings(parameters);
  if (!plan.ok()) return OperationError(plan.status(), "quantize", "");

  Output output(options.output);
  const size_t y = output.Add("y", "", plan->output_type, plan->output_shape);
  QUANTD_RETURN_IF_ERROR(Begin(options, {}, &output));
  Output ranges_output(RangesPath(options));
  if (found.ok()) {
    const RangesParts parts = AddRanges(*found, what, &ranges_output);
    QUANTD_RETURN_IF_ERROR(ranges_output.Create(options.force));
    FillRanges(*found, what, parts, &ranges_output);
  }
  const absl::Time start = absl::Now();
  TensorReport report;
  QuantizationError error;
  DynamicQuantizeOutput made;
  made.y = output.bytes(y);
  const absl::Status status = engine->Run(parameters, made, &error);
  if (!status.ok()) return OperationError(status, "quantize", "");
  if (parameters.report_error) report.error = error;
  report.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  report.server_seconds = engine->TakeServerSeconds();
  report.name = options.embeddings.preset;
  report.input_type = plan->input_type;
  report.output_type = plan->output_type;
  report.shape = plan->shape;
  report.bytes_before = plan->input_bytes;
  report.bytes_after = plan->output_bytes;
  Json document = {{"input", options.input},
                   {"output", options.output},
                   {"shape", ShapeJson(plan->output_shape)},
                   {"preset", report.name},
                   {"tensors", Json::array({ToJson(report)})}};
  std::string text = ToText(report);
  if (found.ok()) {
    // Codes without their ranges would be useless, so the ranges are written first.
    QUANTD_RETURN_IF_ERROR(ranges_output.Commit());
    document["ranges"] = RangesPath(options);
    absl::StrAppend(&text, "wrote ", RangesPath(options), "\n");
  }
  return Finish(options, &output, document, text);
}

}  // namespace quantd::cli
