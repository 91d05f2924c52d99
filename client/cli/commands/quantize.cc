// quantctl quantize: selects tensors, arranges the output, and reports.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "commands/commands.h"
#include "commands/ranges.h"
#include "engine/errors.h"
#include "files/text.h"
#include "quantd/field_error.h"
#include "quantd/utf8.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

// A tensor to quantize, with its positions in the output.
struct Task {
  Source x;
  std::string name;  // in the output
  ResultLayout layout;
  size_t y = 0;
  std::optional<size_t> scale = {}, zero_point = {}, tensor_scale = {};
};

// What to do with each tensor of the file.
struct Plan {
  std::deque<Task> tasks;
  TensorCopies copies;
  std::vector<SkippedTensor> skipped;
  std::vector<QuantizedEntry> entries;
};

bool IsFloat(const StoredTensor& tensor) {
  return tensor.type->family == Family::kFloat64 ||
         (tensor.type->data_type != DataType::kUnspecified &&
          Info(tensor.type->data_type).kind == DataTypeKind::kFloat);
}

// Why a tensor of a file with several is not quantized, whatever the blocks; empty if it is.
std::string SkipReason(const StoredTensor& tensor, const Options& options, const Choice& choice,
                       const QuantizationSpec& spec) {
  if (std::string reason = choice.SkipReason(tensor.name); !reason.empty()) return reason;
  const bool integers = spec.takes_int32() && tensor.type->data_type == DataType::kInt32;
  if (!IsFloat(tensor) && !integers) return "not a float";
  if (tensor.shape.size() >= 2 || options.all) return "";
  return absl::StrCat(tensor.shape.empty() ? "no" : "1", " dimension",
                      tensor.shape.empty() ? "s" : "", "; --all includes it");
}

// Adds y, scale and so on to the output, and describes them in the returned entry.
QuantizedEntry AddTo(Output* output, Task* task, const Granularity& granularity) {
  QuantizedEntry entry;
  entry.name = task->name;
  entry.input_type = task->x.type();
  entry.was_float64 = task->x.rounded_from_float64();
  entry.granularity = granularity;
  task->y = output->Add(task->name, "", task->layout.y.data_type, task->x.shape());
  entry.y = output->ReferenceTo(task->y);
  const auto add = [&](absl::string_view suffix, const std::optional<TensorLayout>& part,
                       std::optional<size_t>* index) -> std::optional<Reference> {
    if (!part.has_value()) return std::nullopt;
    *index =
        output->Add(absl::StrCat(task->name, "_", suffix), suffix, part->data_type, part->shape);
    return output->ReferenceTo(**index);
  };
  entry.scale = *add("scale", task->layout.y_scale, &task->scale);
  entry.zero_point = add("zero_point", task->layout.y_zero_point, &task->zero_point);
  entry.tensor_scale = add("tensor_scale", task->layout.y_tensor_scale, &task->tensor_scale);
  return entry;
}

absl::StatusOr<Plan> PlanTensors(const TensorFile& file, const Options& options,
                                 const QuantizationSpec& spec, Output* output) {
  QUANTD_ASSIGN_OR_RETURN(const Choice choice, ChoiceOf(options));
  const bool one_named = file.format == FileFormat::kNpy;
  const bool one_written = output->format() == FileFormat::kNpy;
  Plan plan;
  const auto leave = [&](const StoredTensor& tensor, absl::string_view reason) {
    const std::string what = absl::StrCat(one_written ? "left out" : "copied", ": ", reason);
    plan.skipped.push_back({tensor.name, tensor.type->name, tensor.shape, what});
    if (one_written) return;
    plan.copies.emplace_back(&tensor, output->AddStored(tensor.name, *tensor.type, tensor.shape));
  };
  for (const StoredTensor& tensor : file.tensors) {
    const std::string reason = one_named ? "" : SkipReason(tensor, options, choice, spec);
    if (!reason.empty()) {
      leave(tensor, reason);
      continue;
    }
    QUANTD_ASSIGN_OR_RETURN(Source x, Source::Of(file, tensor));
    absl::StatusOr<ResultLayout> layout = spec.LayoutFor(x.Outline());
    if (!layout.ok()) {
      const std::string field = ErrorField(layout.status());
      if (one_named || (field != "axis" && field != "block_shape")) {
        return OperationError(layout.status(), "quantize", tensor.name);
      }
      leave(tensor, layout.status().message());
      continue;
    }
    Task& task =
        plan.tasks.emplace_back(Task{std::move(x), file.NameOf(tensor), *std::move(layout)});
    if (!one_written && plan.tasks.size() > kMaxQuantizedTensors) {
      return absl::InvalidArgumentError(absl::StrCat(options.output, " would hold more than ",
                                                     kMaxQuantizedTensors, " quantized tensors"));
    }
    plan.entries.push_back(AddTo(output, &task, spec.granularity()));
  }
  if (plan.tasks.empty()) {
    std::string why;
    for (size_t i = 0; i < std::min<size_t>(plan.skipped.size(), 3); ++i) {
      const SkippedTensor& tensor = plan.skipped[i];
      absl::StrAppend(&why, "; ", tensor.name, " is ", tensor.type, " ", ShapeString(tensor.shape),
                      ", ", tensor.reason);
    }
    return absl::InvalidArgumentError(absl::StrCat(file.path, " has nothing to quantize", why));
  }
  if (one_written && plan.tasks.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.path, " has ", plan.tasks.size(), " tensors to quantize, a .npy holds one: ",
        "choose one with --only, or write a .safetensors"));
  }
  return plan;
}

absl::StatusOr<TensorReport> RunTask(const Task& task, const Options& options,
                                     const QuantizationSpec& spec, Engine& engine, Output* output) {
  const absl::Time opened = absl::Now();
  QUANTD_ASSIGN_OR_RETURN(const Operand values, task.x.View(options.output));
  const TensorView& x = values.view;
  const auto bytes = [output](std::optional<size_t> index) {
    return index.has_value() ? output->bytes(*index) : absl::Span<uint8_t>();
  };
  const DynamicQuantizeOutput parts{bytes(task.y), bytes(task.scale), bytes(task.zero_point),
                                    bytes(task.tensor_scale)};
  if (const absl::Status signs = spec.CheckSigns(x); !signs.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("'", task.name, "': ", signs.message()));
  }
  QuantizationError error;
  TensorReport report;
  QUANTD_RETURN_IF_ERROR(Measure(
      engine, "quantize", task.name, opened, x, parts.y,
      [&] { return spec.Run(engine, x, parts, &error); }, &report));
  if (options.spec.report_error) report.error = error;
  report.output_type = task.layout.y.data_type;
  report.scale_shape = task.layout.y_scale->shape;
  report.bytes_before = task.x.byte_size();
  report.bytes_after =
      parts.y.size() + parts.scale.size() + parts.zero_point.size() + parts.tensor_scale.size();
  const auto extent = [](const std::optional<TensorLayout>& part, absl::Span<const uint8_t> in) {
    return part.has_value() ? ExtentOf(part->data_type, part->shape, in) : Extent();
  };
  report.scale = extent(task.layout.y_scale, parts.scale);
  report.zero_point = extent(task.layout.y_zero_point, parts.zero_point);
  report.tensor_scale = extent(task.layout.y_tensor_scale, parts.tensor_scale);
  return report;
}

// Checks that the output can be read again: the description of a .npy names files, and readers have
// limits.
absl::Status CheckReadable(const Options& options, const Output& output) {
  const std::string name = NameOf(options.output);
  if (output.format() != FileFormat::kNpy) return output.CheckHeader(0);
  if (ValidUtf8Prefix(name) == name.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--output: the name is not UTF-8, and the description beside it could not hold it");
}

absl::Status RefuseQuantized(const TensorFile& file) {
  QUANTD_ASSIGN_OR_RETURN(const std::vector<QuantizedTensor> found, FindQuantizedTensors(file));
  if (found.empty() && file.metadata.count("quantd") == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file.path, " is quantized already", found.empty() ? "" : ": ",
                   found.empty() ? "" : found[0].entry.name, "; dequantize it first"));
}

absl::StatusOr<QuantizationSpec> SpecOf(const Options& options) {
  if (options.calibration.empty()) return QuantizationSpec::Of(options.spec);
  QUANTD_ASSIGN_OR_RETURN(GivenScales given, ReadCalibration(options.calibration));
  return QuantizationSpec::Of(options.spec, std::move(given));
}

}  // namespace

absl::Status RunQuantize(const Options& options) {
  QUANTD_RETURN_IF_ERROR(FormatOfPath(options.output).status());
  QUANTD_ASSIGN_OR_RETURN(const QuantizationSpec spec, SpecOf(options));
  QUANTD_ASSIGN_OR_RETURN(const TensorFile file, OpenTensorFile(options.input));
  QUANTD_RETURN_IF_ERROR(RefuseQuantized(file));
  Output output(options.output);
  QUANTD_ASSIGN_OR_RETURN(const Plan plan, PlanTensors(file, options, spec, &output));
  QUANTD_RETURN_IF_ERROR(CheckReadable(options, output));
  QUANTD_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, EngineOf(options));

  for (const auto& [key, value] : file.metadata) output.SetMetadata(key, value);
  output.SetMetadata("quantd", QuantizedEntriesToJson(plan.entries));
  QUANTD_RETURN_IF_ERROR(Begin(options, {}, &output));
  CopyTensors(file, plan.copies, &output);
  uint64_t work = 0;
  for (const Task& task : plan.tasks) {
    work += task.x.byte_size();
    if (task.x.rounded_from_float64() && !options.quiet) {
      std::fprintf(stderr, "note: %s is float64; its elements are rounded to float first\n",
                   Printable(task.name).c_str());
    }
  }
  Json document = {{"input", options.input},
                   {"output", options.output},
                   {"tensors", Json::array()},
                   {"skipped", Json::array()}};
  QUANTD_ASSIGN_OR_RETURN(std::vector<TensorReport> reports,
                          RunTasks(options, work, plan.tasks, &document, [&](const Task& task) {
                            return RunTask(task, options, spec, *engine, &output);
                          }));
  std::string text;
  for (const SkippedTensor& tensor : plan.skipped) {
    if (WantsJson(options)) document["skipped"].push_back(ToJson(tensor));
    text += ToText(tensor);
  }
  absl::StrAppend(&text, ToText(std::move(reports), options.sort, options.details));
  return Finish(options, &output, document, text);
}

}  // namespace quantd::cli
