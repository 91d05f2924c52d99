#include "checkpoints/conversion.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "checkpoints/errors.h"
#include "checkpoints/families.h"
#include "status_macros.h"

namespace quantd::checkpoints {
namespace {

// Weights of one parent that loaders multiply together: they have a common maximum.
constexpr std::array<std::array<absl::string_view, 3>, 5> kSets = {{
    {"q_proj", "k_proj", "v_proj"},
    {"gate_proj", "up_proj", ""},
    {"w1", "w3", ""},
    {"wq_a", "wkv_a_with_mqa", ""},
    {"q_a_proj", "kv_a_proj_with_mqa", ""},
}};

absl::Status Cannot(const Tensor& tensor, absl::string_view reason) {
  return WeightError(absl::InvalidArgumentError(reason), tensor.name);
}

absl::Status NothingConverted(const Model& model, absl::string_view reason) {
  return ContentError("$0: 0 of $1 tensors converted$2$3", model.path, model.places.size(),
                      reason.empty() ? "" : ": ", reason);
}

// Why a tensor can't be converted, whatever its blocks; empty if it can.
std::string WeightSkipReason(const Tensor& tensor, bool any_rank) {
  if (tensor.type == DataType::kUnspecified) return absl::StrCat("its type is ", tensor.dtype);
  const size_t rank = Dimensions(tensor);
  if (any_rank ? rank < 2 : rank != 2) {
    return absl::StrCat(rank == 0 ? "no" : std::to_string(rank),
                        rank == 1 ? " dimension" : " dimensions");
  }
  return tensor.bytes == 0 ? "it is empty" : "";
}

class Encoding {
 public:
  Encoding(const Model& model, const Inventory& inventory, const Selection& selection,
           Conversion* result)
      : model_(model),
        inventory_(inventory),
        selection_(selection),
        result_(result),
        target_(result->target) {}

  absl::Status Run() {
    for (const Place place : model_.All()) {
      Decision& decision = result_->at(place);
      QUANTD_ASSIGN_OR_RETURN(decision, Of(place));
      if (decision.fate == Fate::kConverted && result_->weights_type == DataType::kUnspecified) {
        result_->weights_type = model_.tensor(place).type;
      }
    }
    if (result_->weights_type == DataType::kUnspecified) return Nothing();
    FindIgnored();
    if (SharesFacts(target_.layout)) FindSets();
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Decision> Of(Place place) {
    const Tensor& tensor = model_.tensor(place);
    const InventoryEntry& entry = inventory_.at(place);
    const bool from_gguf = model_.kind == ModelKind::kGguf;
    std::string reason = selection_.choice.SkipReason(tensor.name);
    if (!reason.empty()) return Left(tensor, std::move(reason));
    Decision decision;
    decision.fate = Fate::kConverted;
    decision.layout = target_.layout;
    reason = WeightSkipReason(tensor, /*any_rank=*/from_gguf);
    if (reason.empty()) {
      const auto plan = PlanWeight({target_.layout, tensor.type, tensor.shape});
      if (!plan.ok() && target_.gguf() && !from_gguf) {  // rows that are not whole blocks
        decision.layout = Layout::kGgufF16;
      } else if (!plan.ok()) {
        reason = std::string(plan.status().message());
      }
    }
    const bool floats = entry.role == TensorRole::kLinear || entry.role == TensorRole::kFloats;
    if (floats && !entry.is_named_weight && !selection_.all) {
      return Left(tensor, absl::StrCat(entry.reason, reason.empty() ? "; --all includes it" : ""));
    }
    // transformers, which loads such folders, joins experts to tensors that it does not quantize.
    const bool joined = model_.kind == ModelKind::kFolder && IsOneExperts(tensor.name) &&
                        Info(target_.layout).family == LayoutFamily::kBitsAndBytes;
    if (joined && !selection_.all && !selection_.choice.has_only()) {
      return Left(tensor, "it is an expert's; --all includes it");
    }
    if (reason.empty()) return decision;
    if (selection_.choice.has_only()) return Cannot(tensor, reason);
    return Left(tensor, std::move(reason));
  }

  // The error if nothing is converted: for the first tensor that --only names, or that might be.
  absl::Status Nothing() const {
    std::optional<Place> first;
    for (const Place place : model_.All()) {
      if (!selection_.choice.SkipReason(model_.tensor(place).name).empty()) continue;
      const auto rank = [this](Place at) {  // how likely it is that it was meant
        return 2 * inventory_.at(at).is_named_weight + (model_.tensor(at).shape.size() > 1);
      };
      if (!first.has_value() || rank(place) > rank(*first)) first = place;
    }
    if (!first.has_value()) return NothingConverted(model_, "--only and --skip leave none");
    const std::string& reason = result_->at(*first).reason;
    const Tensor& tensor = model_.tensor(*first);
    if (selection_.choice.has_only()) return Cannot(tensor, reason);
    return NothingConverted(model_, absl::StrCat("'", tensor.name, "': ", reason));
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
    std::set<std::string> modules;
    for (std::string& head : Family(model_).TiedHeads()) modules.insert(std::move(head));
    const bool expressions = Info(target_.layout).family == LayoutFamily::kCompressedTensors;
    for (const Place place : model_.All()) {
      const Tensor& tensor = model_.tensor(place);
      absl::string_view module = tensor.name;
      if (result_->at(place).fate == Fate::kConverted) continue;
      const bool unnamed = tensor.shape.size() > 1 && !absl::EndsWith(module, ".weight") &&
                           absl::StrContains(module, ".experts.");
      if (IsExperts(tensor) || unnamed || (IsOneExperts(tensor.name) && !expressions)) {
        // Loaders make a module of each expert, or one of all.
        constexpr absl::string_view kExperts = "experts";
        module = module.substr(0, module.find(kExperts) + kExperts.size());
        modules.emplace(module);
        const re2::StringPiece text(module.data(), module.size());
        if (expressions) modules.insert(absl::StrCat("re:", RE2::QuoteMeta(text), "\\..*"));
      } else if (tensor.shape.size() > 1 && absl::ConsumeSuffix(&module, ".weight")) {
        modules.emplace(module);
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
          result_->at(member).set = static_cast<int32_t>(result_->sets.size());
        }
        if (!set.empty()) result_->sets.push_back(std::move(set));
      }
    }
  }

  const Model& model_;
  const Inventory& inventory_;
  const Selection& selection_;
  Conversion* const result_;
  const Target& target_;
};

// Refuses models that an encoder must not convert.
absl::Status RefuseQuantized(const Model& model, const Inventory& inventory, const Target& target) {
  constexpr char kFirst[] = "decode it first (--to=bf16)";
  if (model.kind == ModelKind::kGguf && !target.gguf()) {
    return ContentError("$0 is a .gguf, which $1 is not made of; $2", model.path, target.name,
                        kFirst);
  }
  for (const Shard& shard : model.shards) {
    if (shard.metadata.count("quantd") == 0) continue;
    return ContentError("$0 was quantized by quantctl; quantctl dequantize it first",
                        shard.file.path);
  }
  std::string what;
  if (const std::string& method = inventory.quantization.method; !method.empty()) {
    absl::StrAppend(&what, ", by a quantization_config (", method, ")");
  }
  if (!inventory.weights.empty()) {
    const QuantizedWeight& weight = inventory.weights[0];
    absl::StrAppend(&what, ", '", weight.name, "' (", weight.form, ")");
  } else if (const auto place = inventory.First(TensorRole::kCodes); place.has_value()) {
    absl::StrAppend(&what, ", '", model.tensor(*place).name, "' (", RoleText(inventory, *place),
                    ")");
  }
  if (what.empty()) return absl::OkStatus();
  return ContentError("$0 is quantized already: $1; $2", model.path, what.substr(2), kFirst);
}

absl::Status RefuseUnexplained(const Model& model, const Inventory& inventory,
                               const Choice& choice) {
  const auto first = inventory.First(TensorRole::kCodes);
  if (const std::string& why = inventory.quantization.refused; !why.empty()) {
    return ContentError(
        "$0: $1$2", model.path, why,
        first.has_value() ? absl::StrCat(" ('", model.tensor(*first).name, "')") : "");
  }
  for (const Place place : model.All()) {
    const InventoryEntry& entry = inventory.at(place);
    const std::string& name = model.tensor(place).name;
    if (entry.role != TensorRole::kUnknown || !choice.SkipReason(name).empty()) continue;
    return ContentError("$0: '$1' is not understood: $2", model.path, name, entry.reason);
  }
  return absl::OkStatus();
}

// What is decoded while other weights stay quantized, so that the config says so.
absl::Status ListDecoded(const Model& model, Conversion* result) {
  if (!model.hf_quant_config.is_null()) {
    return ContentError("$0: a model with $1 is decoded as a whole, without --only and --skip",
                        model.path, kHfQuantConfig);
  }
  for (const auto& decisions : result->decisions) {
    for (const Decision& decision : decisions) {
      if (decision.weight < 0) continue;
      absl::string_view module = result->weights[static_cast<size_t>(decision.weight)].name;
      absl::ConsumeSuffix(&module, ".weight");
      result->ignored.emplace_back(module);
    }
  }
  return absl::OkStatus();
}

absl::Status Decode(const Model& model, Inventory* inventory, const Selection& selection,
                    Conversion* result) {
  const Choice& choice = selection.choice;
  QUANTD_RETURN_IF_ERROR(RefuseUnexplained(model, *inventory, choice));
  const bool gguf = model.kind == ModelKind::kGguf;
  if (inventory->weights.empty() && inventory->quantization.method.empty() && !gguf) {
    return ContentError("$0 has nothing to decode: no tensor is quantized", model.path);
  }
  const auto is_left = [&](const QuantizedWeight& weight) {
    return !choice.SkipReason(weight.name).empty();
  };
  result->removes_config =
      std::none_of(inventory->weights.begin(), inventory->weights.end(), is_left) &&
      (!inventory->First(TensorRole::kUnknown).has_value());
  size_t converted = gguf && !choice.has_only() ? 1 : 0;  // by the change of the file's format
  for (const Place place : model.All()) {
    const Tensor& tensor = model.tensor(place);
    const InventoryEntry& entry = inventory->at(place);
    Decision& decision = result->at(place);
    const QuantizedWeight* weight =
        entry.weight < 0 ? nullptr : &inventory->weights[static_cast<size_t>(entry.weight)];
    decision.reason = choice.SkipReason(weight == nullptr ? tensor.name : weight->name);
    const bool selected = decision.reason.empty();
    if (selected) decision.reason = "it is not quantized";
    if (weight != nullptr && selected) {
      decision.fate = entry.role == TensorRole::kCodes ? Fate::kConverted : Fate::kPart;
      if (decision.fate == Fate::kConverted) decision.weight = entry.weight;
      converted += decision.fate == Fate::kConverted;
    } else if (gguf && weight != nullptr) {
      decision.fate = Fate::kLeftOut;  // a .safetensors has no type for it
      absl::StrAppend(&decision.reason, ", and a .safetensors cannot hold ", tensor.dtype);
    } else if (entry.role == TensorRole::kActivation && result->removes_config) {
      decision.fate = Fate::kLeftOut;
      decision.reason = entry.reason;
    } else if (weight == nullptr && selected && (gguf || result->removes_config) &&
               (tensor.type != DataType::kUnspecified || tensor.dtype == "F64") &&
               tensor.type != result->target.output) {
      decision.fate = Fate::kCast;
      converted += gguf ? 1 : 0;
    }
  }
  result->weights = std::move(inventory->weights);
  if (converted == 0 && choice.has_only()) {
    for (const auto& [name, place] : model.places) {
      const bool named = choice.SkipReason(name).empty() && inventory->at(place).weight < 0;
      if (named) return Cannot(model.tensor(place), "it is not quantized");
    }
  }
  if (converted > 0) return result->removes_config ? absl::OkStatus() : ListDecoded(model, result);
  return NothingConverted(
      model, result->weights.empty() ? "none is quantized" : "--only and --skip leave none");
}

}  // namespace

absl::StatusOr<Conversion> Decide(const Model& model, const Target& target,
                                  const Selection& selection) {
  Conversion result;
  result.target = target;
  for (const Shard& shard : model.shards) result.decisions.emplace_back(shard.tensors.size());
  if (model.gguf.split_parts > 1) {
    return ContentError("$0 is one of $1 parts (split.count): merge them with llama-gguf-split",
                        model.path, model.gguf.split_parts);
  }
  QUANTD_ASSIGN_OR_RETURN(Inventory inventory, TakeInventory(model));
  absl::Status status;
  if (target.decodes) {
    status = Decode(model, &inventory, selection, &result);
  } else {
    status = RefuseQuantized(model, inventory, target);
    if (status.ok()) status = Encoding(model, inventory, selection, &result).Run();
  }
  if (!status.ok()) return status;
  return result;
}

}  // namespace quantd::checkpoints
