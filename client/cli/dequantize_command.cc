// quantctl dequantize: what is quantized in a file, or what the flags say about it, and the report.
#include <fnmatch.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "commands.h"
#include "dequantize_job.h"
#include "flags.h"
#include "method.h"
#include "output.h"
#include "progress.h"
#include "quantized_file.h"
#include "report.h"

namespace quantd::cli {
namespace {

// A tensor to dequantize, with its place in the output.
struct Task {
  Source x;
  std::string name;
  v1::DequantizeRequest method;
  std::optional<DequantizeJob> job;
  size_t y = 0;
};

void SetWhole(const Source& source, v1::Tensor* tensor) {
  SetTensor(source.type(), source.shape(), source.ReadAll(), tensor);
}

// --output_type, else the scale's type when that is one of a result, else FLOAT.
absl::Status SetOutputType(v1::DequantizeRequest* request) {
  if (const std::string text = absl::GetFlag(FLAGS_output_type); !text.empty()) {
    const absl::StatusOr<DataType> type = ParseDataType(text);
    if (!type.ok() || Info(*type).kind != DataTypeKind::kFloat) {
      return absl::InvalidArgumentError(
          absl::StrCat("--output_type: '", text, "' is not float, float16 or bfloat16"));
    }
    request->set_output_type(static_cast<v1::DataType>(*type));
    return absl::OkStatus();
  }
  const auto scale = static_cast<DataType>(request->scale().data_type());
  const bool is_result = Info(scale).kind == DataTypeKind::kFloat;
  request->set_output_type(static_cast<v1::DataType>(is_result ? scale : DataType::kFloat));
  return absl::OkStatus();
}

absl::StatusOr<Task> TaskOfEntry(const QuantizedTensor& tensor) {
  Task task{tensor.y, tensor.entry.name, {}, {}, 0};
  SetWhole(tensor.scale, task.method.mutable_scale());
  if (tensor.zero_point.has_value()) {
    SetWhole(*tensor.zero_point, task.method.mutable_zero_point());
  }
  if (tensor.tensor_scale.has_value()) {
    SetWhole(*tensor.tensor_scale, task.method.mutable_tensor_scale());
  }
  SetGranularity(tensor.entry.granularity, &task.method);
  if (absl::Status status = SetOutputType(&task.method); !status.ok()) return status;
  return task;
}

// A tensor about which the flags say everything.
absl::StatusOr<Task> TaskOfFlags(const TensorFile& file, const StoredTensor& tensor) {
  absl::StatusOr<Source> x = Source::Of(file, tensor);
  if (!absl::GetFlag(FLAGS_type).empty()) {
    const absl::StatusOr<DataType> type = ParseDataType(absl::GetFlag(FLAGS_type));
    if (!type.ok()) return type.status();
    absl::StatusOr<Shape> shape = ParseShape(absl::GetFlag(FLAGS_shape), "shape");
    if (!shape.ok()) return shape.status();
    x = Source::As(file, tensor, *type, shape->empty() ? tensor.shape : *shape);
  }
  if (!x.ok()) return x.status();
  Task task{*x, tensor.name.empty() ? "y" : tensor.name, {}, {}, 0};
  absl::StatusOr<v1::Tensor> scale =
      ParseOperand(absl::GetFlag(FLAGS_scale), "scale", DataType::kFloat, true);
  if (!scale.ok()) return scale.status();
  *task.method.mutable_scale() = *std::move(scale);
  if (const std::string text = absl::GetFlag(FLAGS_zero_point); !text.empty()) {
    absl::StatusOr<v1::Tensor> zero_point = ParseOperand(text, "zero_point", x->type(), true);
    if (!zero_point.ok()) return zero_point.status();
    *task.method.mutable_zero_point() = *std::move(zero_point);
  }
  if (const std::string text = absl::GetFlag(FLAGS_tensor_scale); !text.empty()) {
    absl::StatusOr<v1::Tensor> second = ParseOperand(text, "tensor_scale", DataType::kFloat, false);
    if (!second.ok()) return second.status();
    *task.method.mutable_tensor_scale() = *std::move(second);
  }
  const absl::StatusOr<Granularity> granularity = GranularityOfFlags();
  if (!granularity.ok()) return granularity.status();
  SetGranularity(*granularity, &task.method);
  if (absl::Status status = SetOutputType(&task.method); !status.ok()) return status;
  return task;
}

// The tensors to work on; `used` gets the names of all that take part in one of them.
absl::StatusOr<std::deque<Task>> FindTasks(const TensorFile& file, std::set<std::string>* used) {
  std::deque<Task> tasks;
  if (!absl::GetFlag(FLAGS_scale).empty()) {
    for (const StoredTensor& tensor : file.tensors) {
      const bool one = file.tensors.size() == 1;
      if (!one && (absl::GetFlag(FLAGS_tensor).empty() || !IsChosen(tensor.name))) continue;
      absl::StatusOr<Task> task = TaskOfFlags(file, tensor);
      if (!task.ok()) return task.status();
      tasks.push_back(*std::move(task));
      used->insert(tensor.name);
    }
    if (!tasks.empty()) return tasks;
    return absl::InvalidArgumentError(
        absl::StrCat(file.path, " holds several tensors: choose with --tensor"));
  }
  const absl::StatusOr<std::vector<QuantizedTensor>> found = FindQuantizedTensors(file);
  if (!found.ok()) return found.status();
  for (const QuantizedTensor& tensor : *found) {
    if (!IsChosen(tensor.entry.name)) continue;
    absl::StatusOr<Task> task = TaskOfEntry(tensor);
    if (!task.ok()) return task.status();
    tasks.push_back(*std::move(task));
    const QuantizedEntry& entry = tensor.entry;
    used->insert({entry.y.tensor, entry.scale.tensor});
    if (entry.zero_point.has_value()) used->insert(entry.zero_point->tensor);
    if (entry.tensor_scale.has_value()) used->insert(entry.tensor_scale->tensor);
  }
  if (!tasks.empty()) return tasks;
  return absl::InvalidArgumentError(absl::StrCat(
      file.path, found->empty()
                     ? " does not say how it was quantized; give --scale (and --zero_point, --type)"
                     : ": --tensor chooses none of its quantized tensors"));
}

absl::StatusOr<TensorReport> RunTask(const Task& task, const Output& output, Progress* progress) {
  const absl::Time start = absl::Now();
  const auto type = static_cast<DataType>(task.method.output_type());
  progress->SetLabel(task.name);
  absl::Status status = task.job->Run(
      [&](const Box& box, absl::string_view y) {
        ScatterBox({reinterpret_cast<const uint8_t*>(y.data()), y.size()}, Info(type).bits,
                   task.x.shape(), box, output.bytes(task.y));
        return absl::OkStatus();
      },
      [&](uint64_t bytes) { progress->Add(bytes); });
  if (!status.ok()) return status;
  TensorReport report;
  report.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  report.name = task.name;
  report.input_type = task.x.type();
  report.output_type = type;
  report.shape = task.x.shape();
  report.bytes_before = task.x.byte_size();
  report.bytes_after = output.bytes(task.y).size();
  report.pieces = task.job->pieces();
  return report;
}

}  // namespace

bool IsChosen(const std::string& tensor_name) {
  const std::vector<std::string> patterns = absl::GetFlag(FLAGS_tensor);
  return patterns.empty() ||
         std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
           return fnmatch(pattern.c_str(), tensor_name.c_str(), 0) == 0;
         });
}

absl::Status CheckChoice(const TensorFile& file) {
  for (const std::string& pattern : absl::GetFlag(FLAGS_tensor)) {
    const bool found =
        std::any_of(file.tensors.begin(), file.tensors.end(), [&](const StoredTensor& tensor) {
          return fnmatch(pattern.c_str(), tensor.name.c_str(), 0) == 0;
        });
    if (!found) {
      return absl::InvalidArgumentError(absl::StrCat(file.path, " has no tensor '", pattern,
                                                     "'; quantctl inspect shows its tensors"));
    }
  }
  return absl::OkStatus();
}

absl::Status RunDequantize(const std::string& input) {
  const std::string path = absl::GetFlag(FLAGS_output);
  if (path.empty()) {
    return absl::InvalidArgumentError("say where to write: -o OUT.npy or -o OUT.safetensors");
  }
  if (const auto format = FormatOfPath(path); !format.ok()) return format.status();
  const absl::StatusOr<TensorFile> file = OpenTensorFile(input);
  if (!file.ok()) return file.status();
  if (absl::Status status = CheckChoice(*file); !status.ok()) return status;
  std::set<std::string> used;
  absl::StatusOr<std::deque<Task>> tasks = FindTasks(*file, &used);
  if (!tasks.ok()) return tasks.status();
  Output output(path);
  if (output.format() == FileFormat::kNpy && tasks->size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(input, " has ", tasks->size(),
                     " tensors to dequantize, a .npy holds one: choose one with --tensor, or "
                     "write a .safetensors"));
  }

  const absl::StatusOr<std::unique_ptr<Server>> server = ConnectByFlags();
  if (!server.ok()) return server.status();
  uint64_t work = 0;
  for (Task& task : *tasks) {
    absl::StatusOr<DequantizeJob> job =
        DequantizeJob::Plan(server->get(), &task.x, task.method, LimitsOfFlags(**server));
    if (!job.ok()) return job.status();
    task.job = *std::move(job);
    task.y = output.Add(
        Part(task.name, "", static_cast<DataType>(task.method.output_type()), task.x.shape()));
    work += task.x.byte_size();
  }
  std::vector<std::pair<const StoredTensor*, size_t>> copies;
  if (output.format() == FileFormat::kSafetensors && file->format == FileFormat::kSafetensors) {
    for (const StoredTensor& tensor : file->tensors) {
      if (used.count(tensor.name) > 0) continue;
      copies.emplace_back(
          &tensor, output.Add({tensor.name, "", tensor.type, tensor.shape, /*verbatim=*/true}));
    }
    for (const auto& [key, value] : file->metadata) {
      if (key != "quantd") output.SetMetadata(key, value);
    }
  }
  if (absl::Status status = output.Create(); !status.ok()) return status;
  for (const auto& [tensor, index] : copies) {
    const absl::Span<const uint8_t> bytes = file->Bytes(*tensor);
    std::copy(bytes.begin(), bytes.end(), output.bytes(index).begin());
  }
  Json document = {{"input", input}, {"output", path}, {"tensors", Json::array()}};
  std::string text;
  {
    Progress progress(!absl::GetFlag(FLAGS_quiet), work);
    for (const Task& task : *tasks) {
      const absl::StatusOr<TensorReport> report = RunTask(task, output, &progress);
      if (!report.ok()) return report.status();
      document["tensors"].push_back(ToJson(*report));
      text += ToText(*report);
    }
  }
  if (absl::Status status = output.Commit(); !status.ok()) return status;
  if (absl::GetFlag(FLAGS_quiet) && !absl::GetFlag(FLAGS_json)) return absl::OkStatus();
  std::fputs(absl::GetFlag(FLAGS_json) ? Dump(document).c_str()
                                       : absl::StrCat(text, "wrote ", path, "\n").c_str(),
             stdout);
  return absl::OkStatus();
}

}  // namespace quantd::cli
