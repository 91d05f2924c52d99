#include "checkpoints/prepared.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "checkpoints/errors.h"
#include "checkpoints/folder.h"
#include "files/file_names.h"
#include "status_macros.h"

namespace quantd::checkpoints {
namespace {

absl::Status CheckOut(const Model& model, const Target& target, const std::string& out) {
  if (out.empty()) return ContentError("OUT has no name");
  const char* ending = target.gguf()                      ? ".gguf"
                       : model.kind != ModelKind::kFolder ? ".safetensors"
                                                          : "";
  if (absl::EndsWithIgnoreCase(out, ending)) return absl::OkStatus();
  return ContentError(absl::StrCat(out, ": the name must end in ", ending));
}

absl::Status CheckReport(const Model& model, const ConvertOptions& options) {
  if (options.report.empty()) return absl::OkStatus();
  std::vector<std::string> places = {model.path, options.out,
                                     absl::StrCat(options.out, ".partial")};
  for (const InputFile* file : model.Files()) places.push_back(file->path);
  for (size_t i = 0; i < places.size(); ++i) {
    if (!LiesIn(options.report, places[i])) continue;
    const char* flag = i == 0 ? " lies in FILE " : i == 1 ? " lies in --output " : " lies in ";
    return ContentError(
        absl::StrCat("--report ", options.report, flag, places[i], "; write to another place"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OutputFile> Prepared::Plan(size_t index) const {
  const std::string name = is_folder ? model.shards[index].file.name : cli::NameOf(options.out);
  return conversion.target.gguf()
             ? PlanGguf(model, conversion, name)
             : PlanSafetensors(model, conversion, static_cast<uint32_t>(index), name);
}

void Prepared::ReportLeftOut(checkpoints::Report* report) const {
  if (is_folder) report->foreign = model.foreign;
  for (uint32_t i = 0; i < model.shards.size(); ++i) {
    for (uint32_t j = 0; j < model.shards[i].tensors.size(); ++j) {
      const Decision& decision = conversion.at({i, j});
      if (decision.fate != Fate::kLeftOut) continue;
      const Tensor& tensor = model.tensor({i, j});
      report->bytes_before += tensor.bytes;
      report->tensors.push_back(
          {tensor.name, tensor.dtype, tensor.shape, "", decision.reason, true, tensor.bytes, 0});
    }
  }
}

void Prepared::Report(const OutputFile& plan, checkpoints::Report* report) const {
  for (const Job& job : plan.jobs) {
    const Tensor& tensor = model.tensor(job.source);
    const Decision& decision = conversion.at(job.source);
    ReportedTensor& entry = report->tensors.emplace_back();
    entry.name = tensor.name;
    entry.dtype = tensor.dtype;
    entry.shape = tensor.shape;
    entry.bytes_before = job.bytes_before;
    for (uint32_t i = 0; i < job.count; ++i) {
      entry.bytes_after += plan.tensors[job.first + i].bytes;
    }
    if (decision.fate == Fate::kCast) {
      entry.layout = conversion.target.name;
    } else if (decision.fate == Fate::kConverted && decision.weight >= 0) {
      const auto& weight = conversion.weights[static_cast<size_t>(decision.weight)];
      entry.name = weight.name;
      entry.shape = weight.shape;
      entry.layout = conversion.target.name;
    } else if (decision.fate == Fate::kConverted) {
      entry.layout = std::string(Info(decision.layout).name);
    } else {
      entry.reason = decision.fate == Fate::kToFloat ? absl::StrCat(decision.reason, "; as F32")
                                                     : decision.reason;
    }
    report->bytes_before += entry.bytes_before;
    report->bytes_after += entry.bytes_after;
  }
}

Json Prepared::State() const {
  Json listed = Json::object();
  for (const InputFile* file : model.Files()) {
    listed[file->name] = {file->size, file->modified_ns};
  }
  return {{"version", 1},         {"to", options.to},   {"only", options.only},
          {"skip", options.skip}, {"all", options.all}, {"files", std::move(listed)}};
}

absl::StatusOr<Prepared> Prepare(const ConvertOptions& options) {
  Prepared prepared;
  prepared.options = options;
  std::string& out = prepared.options.out;
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  QUANTD_ASSIGN_OR_RETURN(const Target target, ParseTarget(options.to));
  QUANTD_ASSIGN_OR_RETURN(const Choice choice, Choice::Of(options.only, options.skip));
  QUANTD_ASSIGN_OR_RETURN(Model model, OpenModel(options.model));
  QUANTD_RETURN_IF_ERROR(CheckOut(model, target, out));
  QUANTD_RETURN_IF_ERROR(CheckReport(model, prepared.options));
  QUANTD_ASSIGN_OR_RETURN(Conversion conversion, Decide(model, target, {choice, options.all}));
  if (conversion.removes_config) {  // it says that the model is quantized
    std::erase_if(model.others, [](const InputFile& file) { return file.name == kHfQuantConfig; });
  }
  prepared.is_folder = model.kind == ModelKind::kFolder && !target.gguf();
  prepared.files = target.gguf() ? 1 : model.shards.size();
  prepared.model = std::move(model);
  prepared.conversion = std::move(conversion);
  return prepared;
}

}  // namespace quantd::checkpoints
