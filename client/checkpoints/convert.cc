#include "checkpoints/convert.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "checkpoints/config.h"
#include "checkpoints/conversion.h"
#include "checkpoints/errors.h"
#include "checkpoints/files.h"
#include "checkpoints/model.h"
#include "checkpoints/output_plan.h"
#include "checkpoints/report.h"
#include "checkpoints/run.h"
#include "checkpoints/workplace.h"
#include "files/file_names.h"
#include "status_macros.h"

namespace quantd::checkpoints {
namespace {

// An opened model and the decisions for it: the common start of a dry run and a run.
struct Prepared {
  ConvertOptions options;  // `out` without trailing slashes
  Model model;
  Conversion conversion;
  bool is_folder = false;  // whether OUT is a folder
  size_t files = 0;        // number of weight files in OUT

  // The plan of one of the files.
  absl::StatusOr<OutputFile> Plan(size_t index) const;
  // What a run must have in common with the run that it resumes.
  Json State() const;
  // Reports the tensors of a file, and those that are in no file.
  void Report(const OutputFile& plan, checkpoints::Report* report) const;
  void ReportLeftOut(checkpoints::Report* report) const;
};

absl::Status CheckOut(const Model& model, const Target& target, const std::string& out) {
  if (out.empty()) return ContentError("OUT has no name");
  const char* ending = target.gguf()                      ? ".gguf"
                       : model.kind != ModelKind::kFolder ? ".safetensors"
                                                          : "";
  if (absl::EndsWithIgnoreCase(out, ending)) return absl::OkStatus();
  return ContentError("$0: the name must end in $1", out, ending);
}

absl::Status CheckReport(const Model& model, const ConvertOptions& options) {
  if (options.report.empty()) return absl::OkStatus();
  std::vector<std::string> places = {model.path, options.out,
                                     absl::StrCat(options.out, ".partial")};
  for (const InputFile* file : model.Files()) places.push_back(file->path);
  for (size_t i = 0; i < places.size(); ++i) {
    if (!LiesIn(options.report, places[i])) continue;
    const char* flag = i == 0 ? " lies in FILE " : i == 1 ? " lies in --output " : " lies in ";
    return ContentError("--report $0$1$2; write to another place", options.report, flag, places[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<OutputFile> Prepared::Plan(size_t index) const {
  const std::string name = is_folder ? model.shards[index].file.name : cli::NameOf(options.out);
  return conversion.target.gguf()
             ? PlanGguf(model, conversion, name)
             : PlanSafetensors(model, conversion, static_cast<uint32_t>(index), name);
}

void Prepared::ReportLeftOut(checkpoints::Report* report) const {
  if (is_folder) report->foreign = model.foreign;
  for (const Place place : model.All()) {
    const Decision& decision = conversion.at(place);
    if (decision.fate != Fate::kLeftOut) continue;
    const Tensor& tensor = model.tensor(place);
    report->bytes_before += tensor.bytes;
    report->tensors.push_back(
        {tensor.name, tensor.dtype, tensor.shape, "", decision.reason, true, tensor.bytes, 0});
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

// The mode of a file that is made from another: its readers stay the same.
uint32_t MadeMode(const InputFile& from) { return from.mode | 0200; }

class Conversions {
 public:
  Conversions(Prepared* prepared, const Executor& executor, Interrupted interrupted,
              ProgressFunction progress)
      : prepared_(*prepared),
        model_(prepared->model),
        interrupted_(interrupted),
        progress_(progress),
        stop_([this] { return IsInterrupted(); }),
        runner_(prepared->model, prepared->conversion, executor, stop_, &done_) {}
  ~Conversions() {
    if (finisher_.joinable()) finisher_.join();
  }

  absl::StatusOr<Report> Run() {
    QUANTD_RETURN_IF_ERROR(LookAhead());
    QUANTD_ASSIGN_OR_RETURN(place_, Workplace::Open(PlaceOptions()));
    absl::Status status = Work();
    if (finisher_.joinable()) finisher_.join();
    status.Update(finished_);
    if (status.ok() && prepared_.options.shards.empty()) status = place_->Publish();
    if (IsWeightError(status) && prepared_.options.shards.empty()) place_->Withdraw();
    if (!status.ok()) return status;
    prepared_.ReportLeftOut(&report_);
    return std::move(report_);
  }

 private:
  WorkplaceOptions PlaceOptions() const {
    WorkplaceOptions options;
    const ConvertOptions& given = prepared_.options;
    options.model = model_.path;
    options.out = given.out;
    for (const InputFile* file : model_.Files()) options.inputs.push_back(file->path);
    options.is_folder = prepared_.is_folder;
    options.shared = !given.shards.empty();
    options.resume = given.resume || options.shared;
    options.force = given.force;
    options.state = prepared_.State();
    if (prepared_.is_folder) {
      for (const Shard& shard : model_.shards) options.names.insert(shard.file.name);
      for (const InputFile& file : model_.others) options.names.insert(file.name);
      options.names.insert(kConfig);
      if (model_.index_file.has_value()) options.names.insert(kIndex);
    } else {
      options.names.insert(cli::NameOf(given.out));
    }
    return options;
  }

  // Plans every file, so that all errors are known before anything is written.
  absl::Status LookAhead() {
    const std::vector<std::string>& shards = prepared_.options.shards;
    for (const std::string& name : shards) {
      const auto is = [&name](const Shard& shard) { return shard.file.name == name; };
      const auto at = std::find_if(model_.shards.begin(), model_.shards.end(), is);
      if (at == model_.shards.end() || !prepared_.is_folder) {
        return ContentError("$0 has no shard '$1'", model_.path, name);
      }
      wanted_.push_back(static_cast<size_t>(at - model_.shards.begin()));
    }
    for (size_t i = 0; i < prepared_.files; ++i) {
      if (shards.empty()) wanted_.push_back(i);
      QUANTD_ASSIGN_OR_RETURN(const OutputFile plan, prepared_.Plan(i));
      const bool wanted = std::find(wanted_.begin(), wanted_.end(), i) != wanted_.end();
      if (wanted) total_ += runner_.BytesToRead(plan);
      if (!model_.index_file.has_value()) continue;  // its names were checked
      for (const OutputTensor& tensor : plan.tensors) {
        weight_map_.emplace_back(tensor.name, static_cast<uint32_t>(i));
      }
    }
    std::sort(weight_map_.begin(), weight_map_.end());
    for (size_t i = 1; i < weight_map_.size(); ++i) {
      if (weight_map_[i - 1].first != weight_map_[i].first) continue;
      return ContentError("the output would hold two tensors named '$0'", weight_map_[i].first);
    }
    for (const InputFile& file : model_.others) total_ += copies() ? file.size : 0;
    return absl::OkStatus();
  }

  // Whether it converts a whole folder, and not some shards.
  bool copies() const { return prepared_.options.shards.empty() && prepared_.is_folder; }

  absl::Status Work() {
    absl::Status status;
    if (copies()) status = CopyOthers();
    for (size_t i = 0; i < wanted_.size() && status.ok(); ++i) status = Make(wanted_[i]);
    if (status.ok() && copies()) status = WriteTexts();
    return status;
  }

  // Whether a finished file of an earlier run can be kept.
  bool IsDone(const std::string& name, uint64_t bytes) const {
    if (!place_->holds_finished()) return false;
    const absl::StatusOr<InputFile> file = InputFile::Of(place_->PathOf(name), name);
    return file.ok() && file->size == bytes;
  }

  // The same for a file with texts, whose lengths are in its header.
  bool TakeOver(OutputFile* plan) const {
    if (!place_->holds_finished()) return false;
    const absl::StatusOr<InputFile> file = InputFile::Of(place_->PathOf(plan->name), plan->name);
    if (!file.ok()) return false;
    const auto is_text = [](const OutputTensor& tensor) { return tensor.is_text; };
    if (std::none_of(plan->tensors.begin(), plan->tensors.end(), is_text)) {
      return file->size == plan->bytes;
    }
    const absl::StatusOr<Model> made = OpenModel(file->path);
    if (!made.ok()) return false;
    for (OutputTensor& tensor : plan->tensors) {
      const Tensor* found = made->Find(tensor.name);
      if (found == nullptr) return false;
      tensor.bytes = found->bytes;
    }
    return true;
  }

  absl::Status CopyOthers() {
    for (const InputFile& file : model_.others) {
      SetLabel(file.name);
      if (!IsDone(file.name, file.size)) {
        const std::string path = place_->PathOf(file.name);
        QUANTD_RETURN_IF_ERROR(MakeFoldersFor(path));
        QUANTD_ASSIGN_OR_RETURN(const auto source, OpenFile::Open(file));
        QUANTD_ASSIGN_OR_RETURN(
            const auto copy, PartialFile::Create(place_->TemporaryOf(file.name), path, file.mode));
        constexpr uint64_t kPiece = 64 << 20;
        for (uint64_t at = 0; at < file.size; at += kPiece) {
          if (IsInterrupted()) return absl::CancelledError("interrupted");
          QUANTD_RETURN_IF_ERROR(copy->Copy(*source, at, at, std::min(kPiece, file.size - at)));
        }
        QUANTD_RETURN_IF_ERROR(copy->Finish(file.size));
      }
      done_ += file.size;
    }
    return absl::OkStatus();
  }

  absl::Status Make(size_t index) {
    QUANTD_ASSIGN_OR_RETURN(OutputFile planned, prepared_.Plan(index));
    auto plan = std::make_unique<OutputFile>(std::move(planned));
    SetLabel(plan->name);
    const uint64_t read = runner_.BytesToRead(*plan), before = done_;
    if (TakeOver(plan.get())) {
      done_ = before + read;
      Record(*plan);
      return absl::OkStatus();
    }
    QUANTD_ASSIGN_OR_RETURN(
        std::unique_ptr<PartialFile> file,
        PartialFile::Create(place_->TemporaryOf(plan->name), place_->PathOf(plan->name),
                            MadeMode(model_.shards[prepared_.is_folder ? index : 0].file)));
    QUANTD_RETURN_IF_ERROR(runner_.Run(plan.get(), file.get()));
    done_ = before + read;
    Record(*plan);
    // The next file is made while this one is written to the disk.
    if (finisher_.joinable()) finisher_.join();
    if (!finished_.ok()) return finished_;
    finisher_ = std::thread([this, shared = std::shared_ptr<OutputFile>(std::move(plan)),
                             out = std::shared_ptr<PartialFile>(std::move(file))] {
      finished_ = FinishFile(model_, shared.get(), out.get());
    });
    return absl::OkStatus();
  }

  // Adds a finished file to the report and the index.
  void Record(const OutputFile& plan) {
    prepared_.Report(plan, &report_);
    for (const OutputTensor& tensor : plan.tensors) tensor_bytes_ += tensor.bytes;
  }

  absl::Status WriteTexts() {
    const Conversion& conversion = prepared_.conversion;
    std::string config;
    if (!conversion.target.decodes) {
      config = WithQuantization(model_.config, conversion.target.layout, conversion.ignored,
                                conversion.weights_type);
    } else if (conversion.removes_config) {
      config = WithoutQuantization(model_.config, conversion.target.output);
    } else {
      config = WithIgnored(model_.config, conversion.ignored);
    }
    absl::Status status = WriteFile(place_->TemporaryOf(kConfig), place_->PathOf(kConfig), config,
                                    MadeMode(*model_.config_file));
    if (!status.ok() || !model_.index_file.has_value()) return status;
    Json index = model_.index;
    if (!index["metadata"].is_object()) index["metadata"] = Json::object();
    index["metadata"]["total_size"] = tensor_bytes_;
    return WriteFile(place_->TemporaryOf(kIndex), place_->PathOf(kIndex), WithMap(std::move(index)),
                     MadeMode(*model_.index_file));
  }

  // The index as DumpJson writes it; the map is text, because as JSON it takes several times as
  // much memory.
  std::string WithMap(Json index) const {
    const auto quoted = [](const std::string& text) {
      return Json(text).dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
    };
    index["weight_map"] = nullptr;
    std::string text = DumpJson(index);
    const std::string place = "\n  \"weight_map\": null";
    const size_t at = text.find(place);
    std::string result = text.substr(0, at + place.size() - 4);
    absl::string_view comma = "{\n";
    for (const auto& [name, shard] : weight_map_) {
      absl::StrAppend(&result, comma, "    ", quoted(name), ": ",
                      quoted(model_.shards[shard].file.name));
      comma = ",\n";
    }
    absl::StrAppend(&result, weight_map_.empty() ? "{" : "\n  ", "}",
                    text.substr(at + place.size()));
    return result;
  }

  void SetLabel(const std::string& name) {
    label_ = name;
    progress_(std::min<uint64_t>(done_, total_), total_, label_);
  }

  bool IsInterrupted() {
    if (std::this_thread::get_id() == caller_) {
      progress_(std::min<uint64_t>(done_, total_), total_, label_);
    }
    return interrupted_();
  }

  Prepared& prepared_;
  Model& model_;
  const Interrupted interrupted_;
  const ProgressFunction progress_;
  const std::thread::id caller_ = std::this_thread::get_id();
  Counter done_ = 0;
  uint64_t total_ = 0;
  std::vector<size_t> wanted_;  // files to make
  std::string label_;
  std::unique_ptr<Workplace> place_;
  Report report_;
  std::vector<std::pair<std::string, uint32_t>> weight_map_;  // sorted: tensor, shard
  uint64_t tensor_bytes_ = 0;
  absl::Status finished_;  // written by the finisher, read after it is joined
  std::thread finisher_;
  const std::function<bool()> stop_;
  Runner runner_;
};

}  // namespace

absl::StatusOr<Report> DryRun(const ConvertOptions& options) {
  QUANTD_ASSIGN_OR_RETURN(Prepared prepared, Prepare(options));
  Report report;
  for (size_t i = 0; i < prepared.files; ++i) {
    QUANTD_ASSIGN_OR_RETURN(const OutputFile plan, prepared.Plan(i));
    prepared.Report(plan, &report);
  }
  prepared.ReportLeftOut(&report);
  return report;
}

absl::StatusOr<Report> Convert(const ConvertOptions& options, const Executor& executor,
                               Interrupted interrupted, ProgressFunction progress) {
  QUANTD_ASSIGN_OR_RETURN(Prepared prepared, Prepare(options));
  return Conversions(&prepared, executor, interrupted, progress).Run();
}

absl::StatusOr<std::vector<std::string>> ShardsOf(const std::string& model) {
  QUANTD_ASSIGN_OR_RETURN(Model opened, OpenModel(model));
  std::vector<std::string> names;
  for (const Shard& shard : opened.shards) names.push_back(shard.file.name);
  return names;
}

}  // namespace quantd::checkpoints
