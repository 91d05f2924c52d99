#include "checkpoints/conversion.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "checkpoints/config.h"
#include "checkpoints/errors.h"
#include "checkpoints/ggml_types.h"
#include "status_macros.h"

namespace quantd::checkpoints {
namespace {

// Weights of one parent that are multiplied together: the packages use a common maximum for them.
constexpr std::array<std::array<absl::string_view, 3>, 4> kSets = {{
    {"q_proj", "k_proj", "v_proj"},
    {"gate_proj", "up_proj", ""},
    {"w1", "w3", ""},
    {"wq_a", "wkv_a_with_mqa", ""},
}};

absl::Status Cannot(const Tensor& tensor, absl::string_view reason) {
  return WeightError(absl::InvalidArgumentError(reason), tensor.name);
}

// Why a tensor can't be converted, whatever its blocks; empty if it can.
std::string WeightSkipReason(const Tensor& tensor, bool any_rank) {
  if (tensor.type == DataType::kUnspecified) return absl::StrCat("its type is ", tensor.dtype);
  const size_t rank = tensor.shape.size();
  if (any_rank ? rank < 2 : rank != 2) {
    return absl::StrCat(rank == 0 ? "no" : std::to_string(rank),
                        rank == 1 ? " dimension" : " dimensions");
  }
  return tensor.bytes == 0 ? "it is empty" : "";
}

class Encoding {
 public:
  Encoding(const Model& model, const Selection& selection, Conversion* result)
      : model_(model), selection_(selection), result_(result), target_(result->target) {}

  absl::Status Run() {
    for (uint32_t i = 0; i < model_.shards.size(); ++i) {
      std::vector<Decision>& decisions = result_->decisions.emplace_back();
      for (const Tensor& tensor : model_.shards[i].tensors) {
        QUANTD_ASSIGN_OR_RETURN(Decision decision, Of(tensor));
        if (decision.fate == Fate::kConverted && result_->weights_type == DataType::kUnspecified) {
          result_->weights_type = tensor.type;
        }
        decisions.push_back(std::move(decision));
      }
    }
    FindIgnored();
    if (SharesFacts(target_.layout)) FindSets();
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Decision> Of(const Tensor& tensor) {
    const bool from_gguf = model_.kind == ModelKind::kGguf;
    std::string reason = selection_.choice.SkipReason(tensor.name);
    if (reason.empty() && !from_gguf && !selection_.all && !IsWeightOfLinear(tensor.name)) {
      reason = "its name; --all includes it";
    }
    if (!reason.empty()) return Left(tensor, std::move(reason));
    reason = WeightSkipReason(tensor, /*any_rank=*/from_gguf);
    Decision decision;
    decision.fate = Fate::kConverted;
    decision.layout = target_.layout;
    if (reason.empty()) {
      const auto plan = PlanWeight({target_.layout, tensor.type, tensor.shape});
      if (plan.ok()) return decision;
      reason = std::string(plan.status().message());
      if (target_.gguf() && !from_gguf) {  // rows that are not whole blocks
        decision.layout = Layout::kGgufF16;
        return decision;
      }
    }
    if (selection_.choice.has_only()) return Cannot(tensor, reason);
    return Left(tensor, std::move(reason));
  }

  // The decision for a tensor that is not converted.
  Decision Left(const Tensor& tensor, std::string reason) const {
    Decision decision;
    decision.reason = std::move(reason);
    if (!target_.gguf() || model_.kind == ModelKind::kGguf) return decision;
    const bool is_float = tensor.type != DataType::kUnspecified || tensor.dtype == "F64";
    if (is_float && tensor.shape.size() < 2 && tensor.dtype != "F32") {
      decision.fate = Fate::kToFloat;
    } else if (FindGgml(tensor.dtype) == nullptr) {
      decision.fate = Fate::kLeftOut;
      decision.reason = absl::StrCat("GGML has no type for ", tensor.dtype);
    }
    return decision;
  }

  void FindIgnored() {
    std::set<std::string> modules = {"lm_head"};
    for (uint32_t i = 0; i < model_.shards.size(); ++i) {
      for (uint32_t j = 0; j < model_.shards[i].tensors.size(); ++j) {
        const Tensor& tensor = model_.shards[i].tensors[j];
        absl::string_view module = tensor.name;
        if (result_->at({i, j}).fate == Fate::kConverted || tensor.shape.size() != 2) continue;
        if (absl::ConsumeSuffix(&module, ".weight")) modules.emplace(module);
      }
    }
    result_->ignored.assign(modules.begin(), modules.end());
  }

  void FindSets() {
    absl::flat_hash_map<std::string, int32_t> sets;
    for (const auto& [name, place] : model_.places) {
      for (const auto& members : kSets) {
        absl::string_view parent = name;
        if (!absl::ConsumeSuffix(&parent, absl::StrCat(members[0], ".weight"))) continue;
        if (!parent.empty() && parent.back() != '.') continue;
        std::vector<Place> set;
        for (const absl::string_view member : members) {
          if (member.empty()) continue;
          const auto at = model_.places.find(absl::StrCat(parent, member, ".weight"));
          if (at == model_.places.end() || result_->at(at->second).fate != Fate::kConverted) {
            set.clear();
            break;
          }
          set.push_back(at->second);
        }
        for (const Place& member : set) {
          result_->decisions[member.shard][member.tensor].set =
              static_cast<int32_t>(result_->sets.size());
        }
        if (!set.empty()) result_->sets.push_back(std::move(set));
      }
    }
  }

  const Model& model_;
  const Selection& selection_;
  Conversion* const result_;
  const Target& target_;
};

// Refuses models that an encoder must not convert.
absl::Status RefuseQuantized(const Model& model, const Target& target) {
  constexpr char kFirst[] = "decode it first (--to=bf16)";
  if (model.kind == ModelKind::kGguf) {
    if (!target.gguf()) {
      return ContentError(absl::StrCat(model.path, " is a .gguf, which ", target.name,
                                       " is not made of; ", kFirst));
    }
    for (const Tensor& tensor : model.shards[0].tensors) {
      if (IsPlain(*FindGgml(int64_t{tensor.ggml_type}))) continue;
      return ContentError(absl::StrCat(model.path, ": '", tensor.name, "' is quantized already, ",
                                       tensor.dtype, "; ", kFirst));
    }
    return absl::OkStatus();
  }
  if (const std::string quant_method = QuantMethod(model.config); !quant_method.empty()) {
    return ContentError(absl::StrCat(model.config_file->path, " has a quantization_config (",
                                     quant_method, "): the model is quantized already; ", kFirst));
  }
  for (const Shard& shard : model.shards) {
    if (shard.metadata.count("quantd") == 0) continue;
    return ContentError(
        absl::StrCat(shard.file.path, " was quantized by quantctl; quantctl dequantize it first"));
  }
  const absl::StatusOr<std::vector<QuantizedWeight>> found = FindQuantizedWeights(model);
  if (!found.ok()) {
    return IsFileError(found.status())
               ? ContentError(absl::StrCat(model.path, ": ", found.status().message()))
               : found.status();
  }
  if (found->empty()) return absl::OkStatus();
  return ContentError(absl::StrCat(model.path, ": '", (*found)[0].name, "' is quantized already (",
                                   Info((*found)[0].plan.layout).name, "); ", kFirst));
}

absl::Status Decode(const Model& model, const Selection& selection, Conversion* result) {
  const std::string quant_method = QuantMethod(model.config);
  if (!quant_method.empty() && !CanDecode(quant_method)) {
    return ContentError(absl::StrCat(model.config_file->path, ": quant_method '", quant_method,
                                     "' cannot be decoded: fp8, compressed-tensors and "
                                     "bitsandbytes can"));
  }
  absl::StatusOr<std::vector<QuantizedWeight>> weights = FindQuantizedWeights(model);
  if (!weights.ok()) {
    return ContentError(absl::StrCat(model.path, ": ", weights.status().message()));
  }
  if (weights->empty() && quant_method.empty() && model.kind != ModelKind::kGguf) {
    return ContentError(absl::StrCat(model.path, " has nothing to decode: no tensor is quantized"));
  }
  result->weights = *std::move(weights);
  for (const Shard& shard : model.shards) {
    std::vector<Decision>& decisions = result->decisions.emplace_back(shard.tensors.size());
    for (Decision& decision : decisions) decision.reason = "it is not quantized";
  }
  result->removes_config = true;
  const auto at = [result](Place place) -> Decision& {
    return result->decisions[place.shard][place.tensor];
  };
  for (size_t i = 0; i < result->weights.size(); ++i) {
    const QuantizedWeight& weight = result->weights[i];
    if (std::string reason = selection.choice.SkipReason(weight.name); !reason.empty()) {
      result->removes_config = false;
      for (const std::optional<Place>& part : weight.parts) {
        if (part.has_value()) at(*part).reason = reason;
      }
      continue;
    }
    for (const std::optional<Place>& part : weight.parts) {
      if (part.has_value()) at(*part).fate = Fate::kPart;
    }
    for (const Place& companion : weight.companions) {
      at(companion).fate = Fate::kLeftOut;
      at(companion).reason = "it belongs to quantized activations";
    }
    at(weight.main).fate = Fate::kConverted;
    at(weight.main).weight = static_cast<int32_t>(i);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Conversion> Decide(const Model& model, const Target& target,
                                  const Selection& selection) {
  Conversion result;
  result.target = target;
  absl::Status status;
  if (target.decodes) {
    status = Decode(model, selection, &result);
  } else {
    status = RefuseQuantized(model, target);
    if (status.ok()) status = Encoding(model, selection, &result).Run();
  }
  if (!status.ok()) return status;
  return result;
}

}  // namespace quantd::checkpoints
