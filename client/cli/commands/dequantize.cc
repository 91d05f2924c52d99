// quantctl dequantize: selects quantized tensors of a file, or one that flags describe, and
// reports.
#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "commands/commands.h"
#include "engine/errors.h"
#include "engine/parameters.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

// A tensor to dequantize, with its place in the output.
struct DequantizeTask {
  QuantizedParts parts;
  std::string name;
  DataType output_type;
  bool to_float64 = false;
  size_t y = 0;
};

bool IsResult(DataType type) { return Info(type).kind == DataTypeKind::kFloat; }

// --output_type, or else `otherwise` if it is a valid output type, or else FLOAT.
absl::StatusOr<DataType> OutputType(const Options& options, DataType otherwise) {
  if (options.output_type.empty()) return IsResult(otherwise) ? otherwise : DataType::kFloat;
  absl::StatusOr<DataType> type = ParseDataType(options.output_type);
  if (type.ok() && IsResult(*type)) return type;
  return absl::InvalidArgumentError(
      absl::StrCat("--output_type: '", options.output_type, "' is not float, float16 or bfloat16"));
}

absl::StatusOr<DequantizeTask> TaskOfEntry(const QuantizedTensor& tensor, const Options& options) {
  QUANTD_ASSIGN_OR_RETURN(const DataType type, OutputType(options, tensor.entry.input_type));
  QUANTD_ASSIGN_OR_RETURN(QuantizedParts parts, QuantizedParts::Of(tensor, options.output));
  return DequantizeTask{std::move(parts), tensor.entry.name, type,
                        tensor.entry.was_float64 && options.output_type.empty()};
}

// A tensor that flags describe completely.
absl::StatusOr<DequantizeTask> TaskOfFlags(const TensorFile& file, const StoredTensor& tensor,
                                           const Options& options) {
  absl::StatusOr<Source> x = Source::Of(file, tensor);
  if (!options.spec.type.empty()) {
    QUANTD_ASSIGN_OR_RETURN(const DataType type, ParseDataType(options.spec.type));
    const Shape shape(options.shape.begin(), options.shape.end());
    x = Source::As(file, tensor, type, shape.empty() ? tensor.shape : shape);
  }
  if (!x.ok()) return x.status();
  QUANTD_ASSIGN_OR_RETURN(QuantizedParts parts,
                          QuantizedParts::Of(*x, options.spec, options.output));
  QUANTD_ASSIGN_OR_RETURN(const DataType type,
                          OutputType(options, parts.parameters().scale.data_type));
  return DequantizeTask{std::move(parts), file.NameOf(tensor), type};
}

struct Selection {
  std::deque<DequantizeTask> tasks;
  absl::flat_hash_set<std::string> used;  // names in the file of tensors that are dequantized
  std::vector<QuantizedEntry> left;       // tensors that stay quantized
  std::vector<NamedFile> files;           // other input files besides FILE
};

absl::StatusOr<Selection> Select(const TensorFile& file, const Options& options) {
  QUANTD_ASSIGN_OR_RETURN(const Choice choice, ChoiceOf(options));
  Selection selected;
  const auto take = [&selected](absl::StatusOr<DequantizeTask> task) -> absl::Status {
    if (!task.ok()) return task.status();
    selected.tasks.push_back(*std::move(task));
    return absl::OkStatus();
  };
  if (!options.spec.scale.empty()) {
    for (const StoredTensor& tensor : file.tensors) {
      const bool one = file.tensors.size() == 1;
      if (!one && (options.only.empty() || !choice.SkipReason(tensor.name).empty())) continue;
      QUANTD_RETURN_IF_ERROR(take(TaskOfFlags(file, tensor, options)));
      selected.used.insert(tensor.name);
    }
    if (selected.tasks.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.path, " holds several tensors: choose with --only"));
    }
    // The file's description of its other tensors stays valid.
    const absl::StatusOr<std::vector<QuantizedTensor>> described = FindQuantizedTensors(file);
    if (!described.ok()) return selected;
    for (const QuantizedTensor& tensor : *described) {
      const std::vector<Reference> parts = tensor.entry.parts();
      const bool whole = std::none_of(parts.begin(), parts.end(), [&](const Reference& part) {
        return selected.used.contains(part.tensor);
      });
      if (whole) selected.left.push_back(tensor.entry);
    }
    return selected;
  }
  QUANTD_ASSIGN_OR_RETURN(const std::vector<QuantizedTensor> found, FindQuantizedTensors(file));
  for (const QuantizedTensor& tensor : found) {
    if (!choice.SkipReason(tensor.entry.name).empty()) {
      selected.left.push_back(tensor.entry);
      continue;
    }
    QUANTD_RETURN_IF_ERROR(take(TaskOfEntry(tensor, options)));
    for (const Reference& part : tensor.entry.parts()) {
      selected.used.insert(part.tensor);
      if (file.format != FileFormat::kNpy) continue;
      selected.files.push_back({"FILE", absl::StrCat(FolderOf(file.path), "/", part.tensor)});
    }
  }
  // Tensors that stay quantized keep their parts, also shared ones.
  for (const QuantizedEntry& entry : selected.left) {
    for (const Reference& part : entry.parts()) selected.used.erase(part.tensor);
  }
  if (!selected.tasks.empty()) return selected;
  return absl::InvalidArgumentError(absl::StrCat(
      file.path, found.empty()
                     ? " does not say how it was quantized; give --scale (and --zero_point, --type)"
                     : ": --only and --skip choose none of its quantized tensors"));
}

// Expands FLOATs in the second half of `bytes` to doubles in all of it.
void Widen(absl::Span<uint8_t> bytes) {
  const size_t elements = bytes.size() / sizeof(double);
  for (size_t i = 0; i < elements; ++i) {
    float narrow;
    std::memcpy(&narrow, &bytes[(elements + i) * sizeof(float)], sizeof(narrow));
    const double wide = narrow;
    std::memcpy(&bytes[i * sizeof(double)], &wide, sizeof(wide));
  }
}

absl::StatusOr<TensorReport> RunTask(const DequantizeTask& task, Engine& engine, Output* output) {
  const absl::Time opened = absl::Now();
  DequantizeParameters request = task.parts.parameters();
  request.output_type = task.output_type;
  const absl::Span<uint8_t> bytes = output->bytes(task.y);
  TensorReport report;
  DynamicQuantizeOutput made;
  made.y = task.to_float64 ? bytes.subspan(bytes.size() / 2) : bytes;
  QUANTD_RETURN_IF_ERROR(Measure(
      engine, "dequantize", task.name, opened, request.x, bytes,
      [&] { return engine.Run(request, made, nullptr); }, &report));
  if (task.to_float64) Widen(bytes);
  report.output_type = task.output_type;
  report.bytes_after = bytes.size();
  return report;
}

}  // namespace

absl::Status RunDequantize(const Options& options) {
  QUANTD_RETURN_IF_ERROR(FormatOfPath(options.output).status());
  QUANTD_ASSIGN_OR_RETURN(const TensorFile file, OpenTensorFile(options.input));
  QUANTD_ASSIGN_OR_RETURN(Selection selected, Select(file, options));
  Output output(options.output);
  if (output.format() == FileFormat::kNpy && selected.tasks.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.input, " has ", selected.tasks.size(),
                     " tensors to dequantize, a .npy holds one: choose one with --only, or write "
                     "a .safetensors"));
  }
  QUANTD_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, EngineOf(options));
  uint64_t work = 0;
  for (DequantizeTask& task : selected.tasks) {
    const TensorView& x = task.parts.parameters().x;
    const ElementType& type = task.to_float64 ? *FindByNpy("f8") : ElementTypeOf(task.output_type);
    task.y = output.AddStored(task.name, type, x.shape);
    work += x.bytes.size();
  }
  TensorCopies copies;
  if (output.format() == FileFormat::kSafetensors && file.format == FileFormat::kSafetensors) {
    for (const StoredTensor& tensor : file.tensors) {
      if (selected.used.contains(tensor.name)) continue;
      copies.emplace_back(&tensor, output.AddStored(tensor.name, *tensor.type, tensor.shape));
    }
    for (const auto& [key, value] : file.metadata) {
      if (key != "quantd") output.SetMetadata(key, value);
    }
    if (!selected.left.empty()) output.SetMetadata("quantd", QuantizedEntriesToJson(selected.left));
  }
  QUANTD_RETURN_IF_ERROR(Begin(options, selected.files, &output));
  CopyTensors(file, copies, &output);
  Json document = {
      {"input", options.input}, {"output", options.output}, {"tensors", Json::array()}};
  QUANTD_ASSIGN_OR_RETURN(
      std::vector<TensorReport> reports,
      RunTasks(options, work, selected.tasks, &document,
               [&](const DequantizeTask& task) { return RunTask(task, *engine, &output); }));
  return Finish(options, &output, document,
                ToText(std::move(reports), options.sort, options.details));
}

}  // namespace quantd::cli
