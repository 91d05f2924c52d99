#include "checkpoints/families.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "checkpoints/selection.h"

namespace quantd::checkpoints {
namespace {

// A family in which the general rules are wrong. Each text lists modules, without numbers, between
// spaces: by the ends of their names, heads by their whole names.
struct Exceptions {
  absl::string_view model_type, linear, other, heads;
};
// kEmbedding, kRouter, kHead, and kFamilies, which is sorted.
#include "checkpoints/families.inc"

bool EndsWithOneOf(absl::string_view module, absl::string_view ends) {
  for (const absl::string_view end : absl::StrSplit(ends, ' ', absl::SkipEmpty())) {
    absl::string_view rest = module;
    if (absl::ConsumeSuffix(&rest, end) && (rest.empty() || rest.back() == '.')) return true;
  }
  return false;
}

std::string WithoutNumbers(absl::string_view module) {
  const auto is_word = [](absl::string_view part) {
    return !std::all_of(part.begin(), part.end(), absl::ascii_isdigit);
  };
  const std::vector<absl::string_view> parts = absl::StrSplit(module, '.');
  std::vector<absl::string_view> words;
  std::copy_if(parts.begin(), parts.end(), std::back_inserter(words), is_word);
  return absl::StrJoin(words, ".");
}

// Whether a weight is stored [in, out], as GPT-2's Conv1D: its bias is as long as its rows.
bool IsTransposed(const Model& model, const Tensor& tensor) {
  absl::string_view module = tensor.name;
  if (!absl::ConsumeSuffix(&module, ".weight") || tensor.shape.size() != 2) return false;
  const Tensor* bias = model.Find(absl::StrCat(module, ".bias"));
  return bias != nullptr && bias->shape.size() == 1 && bias->shape[0] == tensor.shape[1] &&
         bias->shape[0] != tensor.shape[0];
}

}  // namespace

Family::Family(const Model& model) : model_(model) {
  const auto type = model.config.find("model_type");
  if (type != model.config.end() && type->is_string()) {
    const std::string name = type->get<std::string>();
    const auto found = std::lower_bound(
        std::begin(kFamilies), std::end(kFamilies), name,
        [](const Exceptions& row, absl::string_view other) { return row.model_type < other; });
    if (found != std::end(kFamilies) && found->model_type == name) {
      linear_ = found->linear;
      other_ = found->other;
      heads_ = found->heads;
    }
  }
  for (const Shard& shard : model.shards) {
    for (const Tensor& tensor : shard.tensors) {
      transposed_ |= absl::StrContains(tensor.name, ".c_") && IsTransposed(model, tensor);
    }
  }
}

std::string Family::OtherByName(const Tensor& tensor) const {
  static const RE2* const embedding = new RE2(kEmbedding);
  static const RE2* const projection = new RE2(kProjection);
  static const RE2* const router = new RE2(kRouter);
  static const RE2* const head = new RE2(kHead);
  absl::string_view name = tensor.name;
  if (IsExperts(tensor)) return "";
  if (!absl::ConsumeSuffix(&name, ".weight")) {
    return "its name does not end in .weight";
  }
  const std::string module = WithoutNumbers(name);
  const absl::string_view last = absl::string_view(module).substr(module.rfind('.') + 1);
  if (EndsWithOneOf(module, heads_)) return "it is the head";
  if (EndsWithOneOf(module, linear_)) return "";
  if (EndsWithOneOf(module, other_)) return "it is no linear layer in this family";
  if (Matches(module, *head)) return "it is a head";
  if (Matches(module, *router)) return "it is a router";
  if (Matches(last, *embedding) && !Matches(last, *projection)) {
    return "it is an embedding or a norm";
  }
  const bool may_be_transposed = absl::StartsWith(last, "c_") || absl::EndsWith(last, "_attn");
  if ((transposed_ && may_be_transposed) || (linear_.empty() && IsTransposed(model_, tensor))) {
    return "it is stored transposed, [in, out]";
  }
  return "";
}

std::vector<std::string> Family::TiedHeads() const {
  std::vector<std::string> heads = absl::StrSplit(heads_, ' ', absl::SkipEmpty());
  heads.push_back("lm_head");
  return heads;
}

std::string OtherByGgufName(absl::string_view name) {
  if (!absl::EndsWith(name, "weight")) return "its name does not end in weight";
  // Small tensors, and tensors that llama.cpp's graphs cannot use quantized.
  static const RE2* const left = new RE2(
      R"(^(position_embd|token_types)\.weight$|_norm\.weight|ffn_gate_(inp|tid2eid)\.weight)"
      R"(|altup|laurel|per_layer_model_proj|ssm_conv1d|shortconv\.conv\.weight)"
      R"(|indexer\.[kq]_proj\.weight|time_mix_(first|w[012]|v[012]|a[012]|g[12])\.weight)"
      R"(|time_mix_(decay_w[12]|lerp_fused)\.weight|attn_rel_b\.weight|\.position_embd)"
      R"(|sam\.(pos_embd|neck\.|net_)|\.rel_pos|\.patch_(embd|merger)|a\.rvq\.codebook)"
      R"(|mm\.a\.code_embd)");
  return Matches(name, *left) ? "llama.cpp does not quantize it" : "";
}

size_t Dimensions(const Tensor& tensor) {
  size_t rank = tensor.shape.size();
  if (tensor.ggml_type < 0) return rank;
  for (size_t i = 0; rank > 1 && tensor.shape[i] == 1; ++i) --rank;
  return rank;
}

bool IsExperts(const Tensor& tensor) {
  return tensor.shape.size() == 3 && absl::StrContains(tensor.name, "experts") &&
         tensor.shape[1] > 1 && tensor.shape[2] > 1;
}

bool IsOneExperts(absl::string_view name) {
  static const RE2* const expert = new RE2(R"((^|\.)experts\.\d+\.)");
  return Matches(name, *expert);
}

}  // namespace quantd::checkpoints
