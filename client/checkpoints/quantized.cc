#include "checkpoints/quantized.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "checkpoints/errors.h"
#include "checkpoints/ggml_types.h"
#include "status_macros.h"

namespace quantd::checkpoints {
namespace {

constexpr uint64_t kMaxQuantState = 1 << 16;
constexpr int64_t kTile = 128;

absl::Status Bad(absl::string_view name, absl::string_view what) {
  return ContentError(absl::StrCat("'", name, "': ", what));
}

// Reads a small tensor.
absl::StatusOr<std::string> Contents(const Model& model, const Tensor& tensor, Place place,
                                     uint64_t most) {
  if (tensor.bytes > most) {
    return Bad(tensor.name,
               absl::StrCat("it has ", tensor.bytes, " bytes, ", most, " are the most"));
  }
  QUANTD_ASSIGN_OR_RETURN(const auto file, OpenFile::Open(model.shards[place.shard].file));
  std::string bytes(tensor.bytes, '\0');
  QUANTD_RETURN_IF_ERROR(
      file->Read(tensor.offset, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}));
  return bytes;
}

// A weight before its parts are searched.
struct Found {
  WeightRequest request;
  WeightFacts facts;
};

class Finder {
 public:
  explicit Finder(const Model& model) : model_(model) {}

  // The weight that the tensor `place` belongs to as its mark; nullopt if it marks none.
  absl::StatusOr<std::optional<QuantizedWeight>> At(Place place) {
    const Tensor& tensor = model_.tensor(place);
    const absl::string_view name = tensor.name;
    absl::string_view weight = name;
    absl::StatusOr<Found> found;
    std::string main;
    if (absl::ConsumeSuffix(&weight, "_packed")) {
      found = Packed(weight, tensor, place);
      main = tensor.name;
    } else if (absl::ConsumeSuffix(&weight, "_scale_inv")) {
      const Tensor* codes = model_.Find(weight);
      if (codes == nullptr || codes->dtype != "F8_E4M3") return std::nullopt;
      found = Found{{Layout::kFp8Tiles, DataType::kBfloat16, codes->shape}, {}};
    } else if (absl::ConsumeSuffix(&weight, "_scale")) {
      const Tensor* codes = model_.Find(weight);
      if (codes == nullptr || (codes->dtype != "I8" && codes->dtype != "F8_E4M3")) {
        return std::nullopt;
      }
      found = Codes(*codes, tensor);
    } else if (absl::ConsumeSuffix(&weight, ".absmax")) {
      const Tensor* codes = model_.Find(weight);
      if (codes == nullptr || codes->dtype != "U8") return std::nullopt;
      found = FourBits(weight);
    } else if (absl::ConsumeSuffix(&weight, ".SCB")) {
      main = absl::StrCat(weight, ".weight");
      if (model_.Find(main) == nullptr) main = std::string(weight);
      const Tensor* codes = model_.Find(main);
      if (codes == nullptr || codes->dtype != "I8") return std::nullopt;
      weight = main;
      found = Found{{Layout::kBnbInt8, DataType::kFloat16, codes->shape}, {}};
    } else {
      return std::nullopt;
    }
    if (!found.ok()) return found.status();
    if (main.empty()) main = std::string(weight);
    QuantizedWeight result;
    result.name = std::string(weight);
    result.main = model_.places.at(main);
    result.facts = found->facts;
    QUANTD_RETURN_IF_ERROR(Complete(found->request, &result));
    return result;
  }

 private:
  // int4, nvfp4 and mxfp4: `weight`_packed and its other parts.
  absl::StatusOr<Found> Packed(absl::string_view weight, const Tensor& packed, Place) {
    const Tensor* scale = model_.Find(absl::StrCat(weight, "_scale"));
    if (scale == nullptr) return Bad(packed.name, "it has no scale beside it");
    if (packed.shape.size() != 2 || scale->shape.size() != 2) {
      return Bad(packed.name, absl::StrCat("it and its scale have ", packed.shape.size(), " and ",
                                           scale->shape.size(), " dimensions, not 2"));
    }
    if (packed.dtype == "U8") {
      if (packed.shape[1] > INT64_MAX / 2) return Bad(packed.name, "its shape overflows");
      const bool nvfp4 = scale->dtype == "F8_E4M3";
      return Found{{nvfp4 ? Layout::kNvfp4 : Layout::kMxfp4,
                    DataType::kBfloat16,
                    {packed.shape[0], 2 * packed.shape[1]}},
                   {}};
    }
    if (packed.dtype != "I32") {
      return Bad(packed.name, absl::StrCat("codes in ", packed.dtype, " cannot be decoded"));
    }
    const std::string shape_name = absl::StrCat(weight, "_shape");
    const auto at = model_.places.find(shape_name);
    if (at == model_.places.end())
      return Bad(packed.name, absl::StrCat("there is no ", shape_name));
    const Tensor& shape = model_.tensor(at->second);
    if (shape.dtype != "I64" || shape.bytes != 16) {
      return Bad(shape_name, absl::StrCat("it is ", shape.dtype, " ", ShapeString(shape.shape),
                                          ", not I64 [2]"));
    }
    QUANTD_ASSIGN_OR_RETURN(const std::string bytes, Contents(model_, shape, at->second, 16));
    std::array<int64_t, 2> lengths;
    std::memcpy(lengths.data(), bytes.data(), 16);
    const int64_t groups = scale->shape[1];
    const bool positive = lengths[0] > 0 && lengths[1] > 0 && groups > 0;
    const int64_t group = positive && lengths[1] % groups == 0 ? lengths[1] / groups : 0;
    if (group != 128 && group != 32) {
      return Bad(packed.name,
                 absl::StrCat("its shape is ", ShapeString(lengths), ", its scale's ",
                              ShapeString(scale->shape), ": groups of 128 and 32 can be decoded"));
    }
    const bool asymmetric = model_.Find(absl::StrCat(weight, "_zero_point")) != nullptr;
    const Layout layout = group == 128 ? (asymmetric ? Layout::kInt4G128Asym : Layout::kInt4G128)
                                       : (asymmetric ? Layout::kInt4G32Asym : Layout::kInt4G32);
    return Found{{layout, scale->type, {lengths[0], lengths[1]}}, {}};
  }

  // int8 and fp8: the scale's shape tells the layout.
  absl::StatusOr<Found> Codes(const Tensor& codes, const Tensor& scale) {
    if (codes.shape.size() != 2) {
      return Bad(codes.name, absl::StrCat("it has ", codes.shape.size(), " dimensions, not 2"));
    }
    if (model_.Find(absl::StrCat(codes.name, "_zero_point")) != nullptr) {
      return Bad(codes.name, "codes of 8 bits with a zero point cannot be decoded");
    }
    const int64_t rows = codes.shape[0], columns = codes.shape[1];
    const bool fp8 = codes.dtype == "F8_E4M3";
    const auto up = [](int64_t n) { return n / kTile + (n % kTile != 0 ? 1 : 0); };
    const Shape row = {rows, 1}, tiles = {up(rows), up(columns)};
    Layout layout;
    if (scale.shape.empty() || scale.shape == Shape{1}) {
      layout = fp8 ? Layout::kFp8Tensor : Layout::kInt8Tensor;
    } else if (scale.shape == row) {
      layout = fp8 ? Layout::kFp8 : Layout::kInt8;
    } else if (fp8 && scale.shape == tiles) {
      layout = Layout::kFp8Block;
    } else {
      return Bad(scale.name, absl::StrCat("its shape is ", ShapeString(scale.shape), ", ",
                                          codes.name, " has ", ShapeString(codes.shape)));
    }
    return Found{{layout, scale.type, codes.shape}, {}};
  }

  // bitsandbytes' nf4 and fp4: a text describes everything.
  absl::StatusOr<Found> FourBits(absl::string_view weight) {
    for (const char* type : {"nf4", "fp4"}) {
      const std::string name = absl::StrCat(weight, ".quant_state.bitsandbytes__", type);
      const auto at = model_.places.find(name);
      if (at == model_.places.end()) continue;
      QUANTD_ASSIGN_OR_RETURN(const std::string text, Contents(model_, model_.tensor(at->second),
                                                               at->second, kMaxQuantState));
      QUANTD_ASSIGN_OR_RETURN(const Json state, ParseJson(text, name));
      return State(state, name, type);
    }
    return Bad(weight, "it has no quant_state beside it");
  }

  absl::StatusOr<Found> State(const Json& state, const std::string& name, absl::string_view type) {
    Found found;
    const auto is = [&state](const char* key, const Json& value) {
      const auto at = state.find(key);
      return at != state.end() && *at == value;
    };
    const bool nested = state.contains("nested_blocksize");
    if (!is("quant_type", type) || !is("blocksize", 64)) {
      return Bad(name, absl::StrCat("blocks of 64 of ", type, " can be decoded, it is: ",
                                    state.dump(-1, ' ', true, Json::error_handler_t::replace)));
    }
    found.request.layout = type == "nf4" ? (nested ? Layout::kBnbNf4Double : Layout::kBnbNf4)
                                         : (nested ? Layout::kBnbFp4Double : Layout::kBnbFp4);
    for (const auto& [dtype, data_type] : {std::pair("float32", DataType::kFloat),
                                           {"float16", DataType::kFloat16},
                                           {"bfloat16", DataType::kBfloat16}}) {
      if (is("dtype", dtype)) found.request.type = data_type;
    }
    if (found.request.type == DataType::kUnspecified) return Bad(name, "it has no dtype of floats");
    const auto shape = state.find("shape");
    bool good = shape != state.end() && shape->is_array() && shape->size() <= kMaxRank;
    for (size_t i = 0; good && i < shape->size(); ++i) {
      good = (*shape)[i].is_number_integer();
      if (good) found.request.shape.push_back((*shape)[i].get<int64_t>());
    }
    if (!good) return Bad(name, "it has no shape");
    if (!nested) return found;
    const auto offset = state.find("nested_offset");
    if (!is("nested_blocksize", 256) || !is("nested_dtype", "float32") || offset == state.end() ||
        !offset->is_number()) {
      return Bad(name, "blocks of 256 of float32 with an offset can be decoded, it has others");
    }
    found.facts.offset = static_cast<float>(offset->get<double>());
    return found;
  }

  // Finds the parts, and compares them with those that the weight must have.
  absl::Status Complete(const WeightRequest& request, QuantizedWeight* result) {
    absl::StatusOr<WeightPlan> plan = PlanWeight(request);
    if (!plan.ok()) return Bad(result->name, plan.status().message());
    result->plan = *std::move(plan);
    for (const LayoutPart& part : WeightParts(result->plan, result->facts)) {
      const std::string name = PartName(result->name, part);
      const auto at = model_.places.find(name);
      if (at == model_.places.end()) {
        if (!absl::EndsWith(name, "weight_format")) {
          return Bad(result->name, absl::StrCat("there is no ", name));
        }
        result->parts.emplace_back();
        continue;
      }
      const Tensor& tensor = model_.tensor(at->second);
      const bool text = absl::StrContains(part.suffix, "quant_state");
      const bool constant = text || absl::EndsWith(name, "weight_format");
      if (!constant && (tensor.dtype != part.dtype || tensor.bytes != part.bytes)) {
        return Bad(name, absl::StrCat("it is ", tensor.dtype, " ", ShapeString(tensor.shape), ", ",
                                      part.dtype, " ", ShapeString(part.shape), " goes with '",
                                      result->name, "' ", ShapeString(result->plan.shape)));
      }
      result->parts.emplace_back(at->second);
    }
    if (model_.Find(absl::StrCat(result->name, "_g_idx")) != nullptr) {
      return Bad(result->name, "columns in another order (g_idx) cannot be decoded");
    }
    absl::string_view module = result->name;
    if (!absl::ConsumeSuffix(&module, "weight")) return absl::OkStatus();
    for (const char* suffix : {"input_scale", "input_zero_point", "input_global_scale"}) {
      const auto at = model_.places.find(absl::StrCat(module, suffix));
      if (at != model_.places.end()) result->companions.push_back(at->second);
    }
    return absl::OkStatus();
  }

  const Model& model_;
};

absl::StatusOr<std::vector<QuantizedWeight>> OfGguf(const Model& model) {
  std::vector<QuantizedWeight> weights;
  const std::vector<Tensor>& tensors = model.shards[0].tensors;
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    const bool plain = IsPlain(*FindGgml(int64_t{tensor.ggml_type}));
    if (plain && tensor.dtype != "F16" && tensor.dtype != "BF16") continue;
    const LayoutInfo* layout = FindGgmlType(tensor.ggml_type);
    if (layout == nullptr) {
      return Bad(tensor.name, absl::StrCat(tensor.dtype, " cannot be decoded"));
    }
    QuantizedWeight weight;
    weight.name = tensor.name;
    weight.main = {0, i};
    weight.parts = {weight.main};
    absl::StatusOr<WeightPlan> plan = PlanWeight({layout->layout, DataType::kFloat, tensor.shape});
    if (!plan.ok()) return Bad(tensor.name, plan.status().message());
    weight.plan = *std::move(plan);
    weights.push_back(std::move(weight));
  }
  return weights;
}

}  // namespace

absl::StatusOr<std::vector<QuantizedWeight>> FindQuantizedWeights(const Model& model) {
  if (model.kind == ModelKind::kGguf) return OfGguf(model);
  std::vector<QuantizedWeight> weights;
  Finder finder(model);
  for (uint32_t i = 0; i < model.shards.size(); ++i) {
    for (uint32_t j = 0; j < model.shards[i].tensors.size(); ++j) {
      QUANTD_ASSIGN_OR_RETURN(std::optional<QuantizedWeight> weight, finder.At({i, j}));
      if (weight.has_value()) weights.push_back(*std::move(weight));
    }
  }
  std::sort(weights.begin(), weights.end(),
            [](const QuantizedWeight& a, const QuantizedWeight& b) { return a.main < b.main; });
  for (size_t i = 1; i < weights.size(); ++i) {
    if (weights[i - 1].main == weights[i].main) {
      return Bad(weights[i].name,
                 absl::StrCat("its tensors are those of ", Info(weights[i - 1].plan.layout).name,
                              " and of ", Info(weights[i].plan.layout).name));
    }
  }
  return weights;
}

}  // namespace quantd::checkpoints
