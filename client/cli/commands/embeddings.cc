// quantctl embeddings quantize: a file of embeddings to a .npy of a vector database's codes.
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "commands/commands.h"
#include "commands/presets.h"
#include "commands/report.h"
#include "engine/errors.h"
#include "files/fvecs.h"
#include "files/mapped_file.h"
#include "files/output.h"
#include "files/source.h"
#include "quantd/quantize_embeddings.h"

namespace quantd::cli {
namespace {

// The tensor of a .npy or .fvecs, with what keeps it.
struct Input {
  std::shared_ptr<const MappedFile> fvecs;
  std::optional<Source> npy;
  OutputFile scratch;  // of a .npy in another order
  TensorView view;
};

absl::Status Named(const absl::Status& status, const std::string& path) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::Status OpenNpy(const std::string& path, const std::string& output, Input* input) {
  const absl::StatusOr<TensorFile> file = OpenTensorFile(path);
  if (!file.ok()) return file.status();
  if (file->format != FileFormat::kNpy) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no .npy and no .fvecs; embeddings are read from these"));
  }
  absl::StatusOr<Source> source = Source::Of(*file, file->tensors[0]);
  if (!source.ok()) return source.status();
  input->npy = *std::move(source);
  absl::StatusOr<TensorView> view = input->npy->View(output, &input->scratch);
  if (!view.ok()) return view.status();
  input->view = *std::move(view);
  return absl::OkStatus();
}

absl::Status Open(const std::string& path, const std::string& output, Input* input) {
  if (!absl::EndsWithIgnoreCase(path, ".fvecs")) return OpenNpy(path, output, input);
  absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  input->fvecs = *std::move(file);
  absl::StatusOr<TensorView> view = ReadFvecs(input->fvecs->bytes());
  if (!view.ok()) return Named(view.status(), path);
  input->view = *std::move(view);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunEmbeddings(const Options& options) {
  const absl::StatusOr<FileFormat> format = FormatOfPath(options.output);
  if (!format.ok()) return format.status();
  if (*format != FileFormat::kNpy) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.output, ": codes of embeddings are written as a .npy"));
  }
  absl::StatusOr<QuantizeEmbeddingsParameters> parameters = PresetOf(options.embeddings.preset);
  if (!parameters.ok()) return parameters.status();
  Input x, ranges;
  if (absl::Status status = Open(options.input, options.output, &x); !status.ok()) return status;
  parameters->x = x.view;
  if (!options.embeddings.ranges.empty()) {
    absl::Status status = OpenNpy(options.embeddings.ranges, options.output, &ranges);
    if (!status.ok()) return status;
    parameters->ranges = ranges.view;
  }
  parameters->dimensions = options.embeddings.dimensions;
  parameters->normalize = options.embeddings.normalize;
  if (options.method.non_finite == "ignore") parameters->non_finite = NonFinite::kIgnore;
  parameters->report_error =
      options.method.report_error && parameters->recipe != EmbeddingRecipe::kBits;
  const absl::StatusOr<QuantizeEmbeddingsPlan> plan = PlanQuantizeEmbeddings(*parameters);
  if (!plan.ok()) return OperationError(plan.status(), "quantize", "");
  absl::StatusOr<std::unique_ptr<Engine>> engine = EngineOf(options);
  if (!engine.ok()) return engine.status();

  Output output(options.output);
  const size_t y = output.Add("y", "", plan->output_type, plan->output_shape);
  std::vector<FileId> others;
  if (ranges.npy.has_value()) others.push_back(ranges.npy->file());
  if (absl::Status status = Begin(options, others, &output); !status.ok()) return status;
  const absl::Time start = absl::Now();
  TensorReport report;
  QuantizationError error;
  const absl::Status status = (*engine)->QuantizeEmbeddings(*parameters, output.bytes(y), &error);
  if (!status.ok()) return OperationError(status, "quantize", "");
  if (parameters->report_error) report.error = error;
  report.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  report.name = options.embeddings.preset;
  report.input_type = plan->input_type;
  report.output_type = plan->output_type;
  report.shape = plan->shape;
  report.bytes_before = plan->input_bytes;
  report.bytes_after = plan->output_bytes;
  Json document = {{"input", options.input},
                   {"output", options.output},
                   {"preset", options.embeddings.preset},
                   {"shape", ShapeJson(plan->output_shape)},
                   {"tensors", Json::array({ToJson(report)})}};
  return Finish(options, &output, document, ToText(report));
}

}  // namespace quantd::cli
