// quantctl quantize: which tensors, into what output, and the report.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "commands.h"
#include "flags.h"
#include "method.h"
#include "output.h"
#include "progress.h"
#include "quantize_job.h"
#include "quantized_file.h"
#include "report.h"
#include "scan.h"

namespace quantd::cli {
namespace {

// A tensor to quantize, with its places in the output.
struct Task {
  Source x;
  std::string name;  // in the output
  std::optional<QuantizeJob> job;
  size_t y = 0, scale = 0;
  std::optional<size_t> zero_point, tensor_scale;
};

bool IsQuantizable(const StoredTensor& tensor, bool scale_is_given) {
  if (tensor.type->family == Family::kFloat64) return true;
  if (tensor.type->data_type == DataType::kInt32) return scale_is_given;
  return tensor.type->data_type != DataType::kUnspecified &&
         Info(tensor.type->data_type).kind == DataTypeKind::kFloat;
}

// Adds y, scale and the like to the output, and says what they are in the returned entry.
QuantizedEntry AddTo(Output* output, Task* task, const Granularity& granularity) {
  const QuantizedForm& form = task->job->form();
  QuantizedEntry entry;
  entry.name = task->name;
  entry.input_type = task->x.type();
  entry.granularity = granularity;
  const auto add = [&](absl::string_view suffix, DataType type, const Shape& shape) {
    const std::string name = suffix.empty() ? task->name : absl::StrCat(task->name, "_", suffix);
    const size_t index = output->Add(Part(name, suffix, type, shape));
    return std::make_pair(index, Reference{output->ReferenceTo(index), type, shape});
  };
  std::tie(task->y, entry.y) = add("", form.y, task->x.shape());
  std::tie(task->scale, entry.scale) = add("scale", form.scale, form.grid.scale_shape);
  if (form.zero_point != DataType::kUnspecified) {
    std::tie(task->zero_point.emplace(), entry.zero_point.emplace()) =
        add("zero_point", form.zero_point, form.grid.scale_shape);
  }
  if (form.tensor_scale != DataType::kUnspecified) {
    std::tie(task->tensor_scale.emplace(), entry.tensor_scale.emplace()) =
        add("tensor_scale", form.tensor_scale, {});
  }
  return entry;
}

void Put(absl::string_view bytes, DataType type, const Shape& shape, const Box& box,
         absl::Span<uint8_t> destination) {
  ScatterBox({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, Info(type).bits, shape,
             box, destination);
}

// Smallest and largest of a whole scale or zero point tensor in the output.
Extent ExtentOf(DataType type, int64_t count, absl::Span<const uint8_t> bytes) {
  Extent extent;
  for (const float value :
       ToFloats(type, count, {reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {
    extent.Add(value);
  }
  return extent;
}

absl::StatusOr<TensorReport> RunTask(const Task& task, const Output& output, Progress* progress) {
  const QuantizedForm& form = task.job->form();
  const absl::Time start = absl::Now();
  progress->SetLabel(task.name);
  const absl::StatusOr<JobReport> result = task.job->Run(
      [&](const QuantizedPiece& piece) {
        const Box blocks = form.grid.BlocksOf(piece.box);
        Put(piece.y, form.y, task.x.shape(), piece.box, output.bytes(task.y));
        Put(piece.scale, form.scale, form.grid.counts, blocks, output.bytes(task.scale));
        if (task.zero_point.has_value()) {
          Put(piece.zero_point, form.zero_point, form.grid.counts, blocks,
              output.bytes(*task.zero_point));
        }
        if (task.tensor_scale.has_value()) {
          Put(piece.tensor_scale, form.tensor_scale, {}, WholeBox({}),
              output.bytes(*task.tensor_scale));
        }
        return absl::OkStatus();
      },
      [&](uint64_t bytes) { progress->Add(bytes); });
  if (!result.ok()) return result.status();

  TensorReport report;
  report.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  report.name = task.name;
  report.input_type = task.x.type();
  report.output_type = form.y;
  report.shape = task.x.shape();
  report.scale_shape = form.grid.scale_shape;
  report.error = result->error;
  report.pieces = result->pieces;
  report.bytes_before = task.x.byte_size();
  report.bytes_after = output.bytes(task.y).size() + output.bytes(task.scale).size();
  report.scale = ExtentOf(form.scale, form.grid.scales, output.bytes(task.scale));
  if (task.zero_point.has_value()) {
    report.bytes_after += output.bytes(*task.zero_point).size();
    report.zero_point = ExtentOf(form.zero_point, form.grid.scales, output.bytes(*task.zero_point));
  }
  if (task.tensor_scale.has_value()) {
    report.bytes_after += output.bytes(*task.tensor_scale).size();
    report.tensor_scale = ExtentOf(form.tensor_scale, 1, output.bytes(*task.tensor_scale));
  }
  return report;
}

Granularity GranularityOfMethod(const QuantizeMethod& method) {
  return method.given ? GranularityOf(*method.given) : GranularityOf(*method.dynamic);
}

}  // namespace

absl::Status RunQuantize(const std::string& input) {
  const std::string path = absl::GetFlag(FLAGS_output);
  if (path.empty()) {
    return absl::InvalidArgumentError("say where to write: -o OUT.safetensors or -o OUT.npy");
  }
  if (const auto format = FormatOfPath(path); !format.ok()) return format.status();
  const absl::StatusOr<QuantizeMethod> method = MethodOfFlags(absl::GetFlag(FLAGS_report_error));
  if (!method.ok()) return method.status();
  const absl::StatusOr<TensorFile> file = OpenTensorFile(input);
  if (!file.ok()) return file.status();
  if (absl::Status status = CheckChoice(*file); !status.ok()) return status;

  std::deque<Task> tasks;
  std::vector<const StoredTensor*> copied;
  for (const StoredTensor& tensor : file->tensors) {
    const bool named = !absl::GetFlag(FLAGS_tensor).empty() && IsChosen(tensor.name);
    const bool works = IsQuantizable(tensor, method->given.has_value());
    if (!IsChosen(tensor.name) || (!works && !named && file->format == FileFormat::kSafetensors)) {
      copied.push_back(&tensor);
      continue;
    }
    absl::StatusOr<Source> source = Source::Of(*file, tensor);
    if (!source.ok()) return source.status();
    tasks.push_back(
        {*std::move(source), tensor.name.empty() ? "y" : tensor.name, {}, 0, 0, {}, {}});
  }
  if (tasks.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(input, " holds no float, float16, bfloat16 or float64 tensor"));
  }

  absl::StatusOr<std::unique_ptr<Server>> server = ConnectByFlags();
  if (!server.ok()) return server.status();
  Output output(path);
  if (output.format() == FileFormat::kNpy && tasks.size() + copied.size() > 1) {
    if (tasks.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          input, " has ", tasks.size(),
          " tensors to quantize, a .npy holds one: choose one with --tensor, or write a "
          ".safetensors"));
    }
    copied.clear();
  }
  uint64_t work = 0;
  std::vector<QuantizedEntry> entries;
  for (Task& task : tasks) {
    absl::StatusOr<QuantizeJob> job =
        QuantizeJob::Plan(server->get(), &task.x, *method, LimitsOfFlags(**server));
    if (!job.ok()) return job.status();
    task.job = *std::move(job);
    work += task.job->work();
    entries.push_back(AddTo(&output, &task, GranularityOfMethod(*method)));
    if (task.x.rounded_from_float64() && !absl::GetFlag(FLAGS_quiet)) {
      std::fprintf(stderr, "note: %s is float64; its elements are rounded to float first\n",
                   task.name.c_str());
    }
  }
  std::vector<size_t> copies;
  copies.reserve(copied.size());
  for (const StoredTensor* tensor : copied) {
    copies.push_back(
        output.Add({tensor->name, "", tensor->type, tensor->shape, /*verbatim=*/true}));
  }
  for (const auto& [key, value] : file->metadata) output.SetMetadata(key, value);
  output.SetMetadata("quantd", QuantizedEntriesToJson(entries));
  if (absl::Status status = output.Create(); !status.ok()) return status;

  for (size_t i = 0; i < copied.size(); ++i) {
    const absl::Span<const uint8_t> bytes = file->Bytes(*copied[i]);
    std::copy(bytes.begin(), bytes.end(), output.bytes(copies[i]).begin());
  }
  Json document = {{"input", input}, {"output", path}, {"tensors", Json::array()}};
  std::string text;
  {
    Progress progress(!absl::GetFlag(FLAGS_quiet), work);
    for (const Task& task : tasks) {
      const absl::StatusOr<TensorReport> report = RunTask(task, output, &progress);
      if (!report.ok()) return report.status();
      document["tensors"].push_back(ToJson(*report));
      text += ToText(*report);
    }
  }
  if (absl::Status status = output.Commit(); !status.ok()) return status;
  for (const StoredTensor* tensor : copied) {
    absl::StrAppend(&text, tensor->name, "  ", tensor->type->name, " ", ShapeString(tensor->shape),
                    " copied\n");
  }
  if (absl::GetFlag(FLAGS_quiet) && !absl::GetFlag(FLAGS_json)) return absl::OkStatus();
  std::fputs(absl::GetFlag(FLAGS_json) ? Dump(document).c_str()
                                       : absl::StrCat(text, "wrote ", path, "\n").c_str(),
             stdout);
  return absl::OkStatus();
}

}  // namespace quantd::cli
