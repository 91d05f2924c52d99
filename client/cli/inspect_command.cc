// quantctl inspect: what a file holds, and what quantizing it would cost.
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "commands.h"
#include "flags.h"
#include "histogram.h"
#include "method.h"
#include "quantize_job.h"
#include "quantized_file.h"
#include "report.h"
#include "scan.h"
#include "statistics.h"

namespace quantd::cli {
namespace {

// Seconds to wait for a server when nobody asked for one.
constexpr double kPatience = 0.5;

struct Findings {
  std::string text;
  Json json;
};

// The error of each element, x - Dequantize(y), counted.
absl::StatusOr<Findings> InspectError(Server* server, const Source& x,
                                      const QuantizeMethod& method) {
  absl::StatusOr<QuantizeJob> job = QuantizeJob::Plan(server, &x, method, LimitsOfFlags(*server));
  if (!job.ok()) return job.status();
  const QuantizedForm& form = job->form();
  GrowingHistogram errors;
  const absl::StatusOr<JobReport> report = job->Run(
      [&](const QuantizedPiece& piece) {
        const int64_t elements = Product(piece.box.size);
        const int64_t blocks = Product(form.grid.BlocksOf(piece.box).size);
        const std::vector<float> before = ToFloats(x.type(), elements, piece.x);
        const std::vector<float> after = ToFloats(form.y, elements, piece.y);
        const std::vector<float> scales = ToFloats(form.scale, blocks, piece.scale);
        std::vector<float> zero_points(blocks, 0.0f), second(1, 1.0f);
        if (form.zero_point != DataType::kUnspecified) {
          zero_points = ToFloats(form.zero_point, blocks, piece.zero_point);
        }
        if (form.tensor_scale != DataType::kUnspecified) {
          second = ToFloats(form.tensor_scale, 1, piece.tensor_scale);
        }
        ForEachBlockRun(piece.box, form.grid, [&](int64_t first, int64_t count, int64_t block) {
          const double scale = scales[block] * second[0], zero_point = zero_points[block];
          for (int64_t i = first; i < first + count; ++i) {
            const double error = before[i] - (after[i] - zero_point) * scale;
            if (std::isfinite(error)) errors.Add(error);
          }
        });
        return absl::OkStatus();
      },
      [](uint64_t) {});
  if (!report.ok()) return report.status();
  const QuantizationError& error = *report->error;
  const Histogram histogram = errors.Between(absl::GetFlag(FLAGS_bins));
  Findings findings;
  findings.text = absl::StrFormat(
      "  error as %s: SQNR %s, largest %.4g, mean squared %.4g, %d saturated\n%s", TypeName(form.y),
      std::isinf(error.sqnr_db) ? "exact" : absl::StrFormat("%.2f dB", error.sqnr_db),
      error.max_absolute_error, error.mean_squared_error, error.saturated_elements,
      histogram.Text());
  findings.json = {{"type", TypeName(form.y)},
                   {"sqnr_db", NumberJson(error.sqnr_db)},
                   {"mean_squared_error", error.mean_squared_error},
                   {"max_absolute_error", error.max_absolute_error},
                   {"saturated_elements", error.saturated_elements},
                   {"histogram", histogram.ToJson()}};
  return findings;
}

Findings InspectValues(const TensorFile& file, const StoredTensor& tensor) {
  Findings findings;
  findings.text =
      absl::StrFormat("%s  %s %s  %d bytes\n", tensor.name.empty() ? file.path : tensor.name,
                      tensor.type->name, ShapeString(tensor.shape), tensor.byte_size);
  findings.json = {{"name", tensor.name},
                   {"type", std::string(tensor.type->name)},
                   {"shape", ShapeJson(tensor.shape)},
                   {"bytes", tensor.byte_size}};
  if (tensor.type->family == Family::kOpaque) return findings;
  Histogram histogram(0, 0, 1);
  const Statistics statistics = Describe(file, tensor, absl::GetFlag(FLAGS_bins), &histogram);
  absl::StrAppendFormat(&findings.text, "  min %.6g  max %.6g  mean %.6g  std %.6g\n",
                        statistics.minimum, statistics.maximum, statistics.mean,
                        statistics.deviation);
  if (statistics.nan + statistics.infinite > 0) {
    absl::StrAppendFormat(&findings.text, "  not finite: %d NaN, %d infinite\n", statistics.nan,
                          statistics.infinite);
  }
  if (statistics.finite > 0) absl::StrAppend(&findings.text, "  values\n", histogram.Text());
  findings.json.update({{"min", NumberJson(statistics.minimum)},
                        {"max", NumberJson(statistics.maximum)},
                        {"mean", NumberJson(statistics.mean)},
                        {"std", NumberJson(statistics.deviation)},
                        {"nan", statistics.nan},
                        {"infinite", statistics.infinite},
                        {"histogram", histogram.ToJson()}});
  return findings;
}

// Stored tensors that are packed or of a type without a name, as what they mean.
absl::Status GiveMeaning(TensorFile* file) {
  const absl::StatusOr<std::vector<QuantizedTensor>> found = FindQuantizedTensors(*file);
  if (!found.ok()) return found.status();
  std::map<std::string, Reference> meanings;
  for (const QuantizedTensor& tensor : *found) {
    // A .npy holds only its own; the others are beside it.
    for (const auto& reference :
         {std::make_optional(tensor.entry.y), std::make_optional(tensor.entry.scale),
          tensor.entry.zero_point, tensor.entry.tensor_scale}) {
      if (!reference.has_value()) continue;
      const std::string own = file->path.substr(file->path.find_last_of('/') + 1);
      const bool npy = file->format == FileFormat::kNpy;
      if (!npy || reference->tensor == own) meanings[npy ? "" : reference->tensor] = *reference;
    }
  }
  for (StoredTensor& tensor : file->tensors) {
    const auto meaning = meanings.find(tensor.name);
    if (meaning == meanings.end()) continue;
    tensor.type = &ElementTypeOf(meaning->second.type);
    tensor.shape = meaning->second.shape;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunInspect(const std::string& input) {
  if (absl::GetFlag(FLAGS_bins) < 1 || absl::GetFlag(FLAGS_bins) > 1000) {
    return absl::InvalidArgumentError("--bins must be 1 to 1000");
  }
  const absl::StatusOr<QuantizeMethod> method = MethodOfFlags(/*report_error=*/true);
  if (!method.ok()) return method.status();
  absl::StatusOr<TensorFile> file = OpenTensorFile(input);
  if (!file.ok()) return file.status();
  if (absl::Status status = CheckChoice(*file); !status.ok()) return status;
  if (absl::Status status = GiveMeaning(&*file); !status.ok()) return status;

  const bool asked = !absl::GetFlag(FLAGS_type).empty();
  absl::StatusOr<std::unique_ptr<Server>> server =
      asked ? ConnectByFlags() : ConnectByFlags(kPatience);
  if (asked && !server.ok()) return server.status();
  Json document = {{"file", input}, {"tensors", Json::array()}};
  std::string text;
  for (const StoredTensor& tensor : file->tensors) {
    if (!IsChosen(tensor.name)) continue;
    Findings findings = InspectValues(*file, tensor);
    const absl::StatusOr<Source> x = Source::Of(*file, tensor);
    if (server.ok() && x.ok() && Info(x->type()).kind == DataTypeKind::kFloat) {
      const absl::StatusOr<Findings> error = InspectError(server->get(), *x, *method);
      if (!error.ok() && asked && file->tensors.size() == 1) return error.status();
      if (error.ok()) {
        findings.text += error->text;
        findings.json["quantization_error"] = error->json;
      } else {
        absl::StrAppend(&findings.text, "  ", error.status().message(), "\n");
        findings.json["quantization_error"] = {{"message", std::string(error.status().message())}};
      }
    }
    text += findings.text;
    document["tensors"].push_back(std::move(findings.json));
  }
  if (absl::GetFlag(FLAGS_quiet) && !absl::GetFlag(FLAGS_json)) return absl::OkStatus();
  std::fputs(absl::GetFlag(FLAGS_json) ? Dump(document).c_str() : text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace quantd::cli
