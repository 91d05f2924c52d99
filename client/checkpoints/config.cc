#include "checkpoints/config.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace quantd::checkpoints {
namespace {

constexpr std::array<const char*, 2> kKeys = {"quantization_config", "compression_config"};

// A quantization scheme in compressed-tensors' config_groups.
struct Scheme {
  const char* format;
  const char* type;
  int bits;
  const char* strategy;
  Json group_size = nullptr;
  bool symmetric = true;
  bool activations = false;  // of 8 bits, quantized on the fly
};

Scheme SchemeOf(Layout layout) {
  switch (layout) {
    case Layout::kInt8:
      return {"int-quantized", "int", 8, "channel", nullptr, true, true};
    case Layout::kInt8Tensor:
      return {"int-quantized", "int", 8, "tensor", nullptr, true, true};
    case Layout::kInt4G128:
      return {"pack-quantized", "int", 4, "group", 128};
    case Layout::kInt4G32:
      return {"pack-quantized", "int", 4, "group", 32};
    case Layout::kInt4G128Asym:
      return {"pack-quantized", "int", 4, "group", 128, false};
    case Layout::kInt4G32Asym:
      return {"pack-quantized", "int", 4, "group", 32, false};
    case Layout::kFp8:
      return {"float-quantized", "float", 8, "channel", nullptr, true, true};
    case Layout::kFp8Tensor:
      return {"float-quantized", "float", 8, "tensor", nullptr, true, true};
    case Layout::kFp8Block:
      return {"float-quantized", "float", 8, "block", nullptr, true, true};
    case Layout::kNvfp4:
      return {"nvfp4-pack-quantized", "float", 4, "tensor_group", 16};
    default:
      return {"mxfp4-pack-quantized", "float", 4, "group", 32};
  }
}

Json CompressedTensors(Layout layout, const std::vector<std::string>& ignored) {
  const Scheme scheme = SchemeOf(layout);
  Json weights = {{"dynamic", false},
                  {"group_size", scheme.group_size},
                  {"num_bits", scheme.bits},
                  {"strategy", scheme.strategy},
                  {"symmetric", scheme.symmetric},
                  {"type", scheme.type}};
  if (layout == Layout::kFp8Block) weights["block_structure"] = {128, 128};
  if (layout == Layout::kNvfp4) weights["scale_dtype"] = "torch.float8_e4m3fn";
  if (layout == Layout::kMxfp4) weights["scale_dtype"] = "torch.uint8";
  Json activations = nullptr;
  if (scheme.activations) {
    activations = {{"dynamic", true},     {"group_size", nullptr}, {"num_bits", 8},
                   {"strategy", "token"}, {"symmetric", true},     {"type", scheme.type}};
    if (layout == Layout::kFp8Block) {
      activations["group_size"] = 128;
      activations["strategy"] = "group";
    }
  }
  const Json group = {{"format", scheme.format},
                      {"input_activations", activations},
                      {"output_activations", nullptr},
                      {"targets", Json::array({"Linear"})},
                      {"weights", weights}};
  return {{"config_groups", {{"group_0", group}}},
          {"format", scheme.format},
          {"global_compression_ratio", nullptr},
          {"ignore", ignored},
          {"kv_cache_scheme", nullptr},
          {"moe_sparsity_config", nullptr},
          {"quant_method", "compressed-tensors"},
          {"quantization_status", "compressed"},
          {"transform_config", Json::object()},
          {"version", "0.20.0"}};
}

Json Fp8(const std::vector<std::string>& ignored) {
  return {{"activation_scheme", "dynamic"},
          {"fmt", "e4m3"},
          {"modules_to_not_convert", ignored},
          {"quant_method", "fp8"},
          {"weight_block_size", {128, 128}}};
}

const char* TorchName(DataType type) {
  if (type == DataType::kBfloat16) return "bfloat16";
  return type == DataType::kFloat16 ? "float16" : "float32";
}

Json BitsAndBytes(Layout layout, const std::vector<std::string>& ignored, DataType weights) {
  const bool eight = layout == Layout::kBnbInt8;
  const bool nf4 = layout == Layout::kBnbNf4 || layout == Layout::kBnbNf4Double;
  const bool twice = layout == Layout::kBnbNf4Double || layout == Layout::kBnbFp4Double;
  const char* type = TorchName(weights);
  return {{"_load_in_4bit", !eight},
          {"_load_in_8bit", eight},
          {"bnb_4bit_compute_dtype", eight ? "float32" : type},
          {"bnb_4bit_quant_storage", "uint8"},
          {"bnb_4bit_quant_type", nf4 ? "nf4" : "fp4"},
          {"bnb_4bit_use_double_quant", twice},
          {"llm_int8_enable_fp32_cpu_offload", false},
          {"llm_int8_has_fp16_weight", false},
          {"llm_int8_skip_modules", ignored},
          {"llm_int8_threshold", 6.0},
          {"load_in_4bit", !eight},
          {"load_in_8bit", eight},
          {"quant_method", "bitsandbytes"}};
}

const Json* FindConfig(const Json& config) {
  for (const char* key : kKeys) {
    const auto at = config.find(key);
    if (at != config.end() && !at->is_null()) return &*at;
  }
  return nullptr;
}

// At the top level or one below.
const Json* FindQuantization(const Json& config) {
  const Json* found = config.is_object() ? FindConfig(config) : nullptr;
  for (auto it = config.begin(); config.is_object() && found == nullptr && it != config.end();
       ++it) {
    if (it->is_object()) found = FindConfig(*it);
  }
  return found;
}

const Json kNull;

const Json& Member(const Json& json, const char* key) {
  if (!json.is_object()) return kNull;
  const auto at = json.find(key);
  return at == json.end() ? kNull : *at;
}

std::string Text(const Json& json, const char* key) {
  const Json& member = Member(json, key);
  return member.is_string() ? member.get<std::string>() : "";
}

// Adds a grid of [rows, columns].
void AddGrid(const Json& blocks, Quantization* result) {
  const auto good = [](const Json& length) {
    return length.is_number_integer() && length.get<int64_t>() > 0;
  };
  if (blocks.is_array() && blocks.size() == 2 && good(blocks[0]) && good(blocks[1])) {
    result->grids.push_back({blocks[0].get<int64_t>(), blocks[1].get<int64_t>()});
  } else {
    result->refused = "its blocks are not two positive numbers";
  }
}

// The config_groups of compressed-tensors.
void ReadSchemes(const Json& config, Quantization* result) {
  const std::string sparsity = Text(Member(config, "sparsity_config"), "format");
  if (!sparsity.empty() && sparsity != "dense") {
    result->refused = absl::StrCat("sparse weights (", sparsity, ") cannot be decoded");
  }
  if (!Member(Member(config, "transform_config"), "config_groups").empty()) {
    result->refused = "transformed weights (transform_config) cannot be decoded";
  }
  const Json& groups = Member(config, "config_groups");
  if (!groups.is_object()) return;
  bool same_bits = true;
  for (const auto& [name, group] : groups.items()) {
    const Json& weights = Member(group, "weights");
    const std::string strategy = Text(weights, "strategy");
    const Json& bits = Member(weights, "num_bits");
    if (!weights.is_object()) continue;
    if (strategy == "tensor") {
      result->grids.push_back({0, 0});
    } else if (strategy == "channel") {
      result->grids.push_back({1, 0});
    } else if (strategy == "block") {
      AddGrid(Member(weights, "block_structure"), result);
    } else if (strategy == "group" || strategy == "tensor_group") {
      AddGrid(Json::array({1, Member(weights, "group_size")}), result);
    } else {
      result->refused = absl::StrCat("strategy '", strategy, "' of weights cannot be decoded");
    }
    if (bits.is_number_integer()) {
      const int number = static_cast<int>(std::clamp<int64_t>(bits.get<int64_t>(), 0, 64));
      same_bits &= result->bits == 0 || result->bits == number;
      result->bits = number;
    }
  }
  if (!same_bits) result->bits = 0;
}

// Sets the type of floats wherever a config names one.
void SetDtype(const char* dtype, Json* config) {
  for (auto it = config->begin(); it != config->end(); ++it) {
    if (it->is_object()) SetDtype(dtype, &*it);
    const bool is_name = it.key() == "dtype" || it.key() == "torch_dtype";
    if (is_name && it->is_string()) *it = dtype;
  }
}

}  // namespace

Quantization ReadQuantization(const Json& config, const Json& hf_quant_config) {
  Quantization result;
  const Json* const found = FindQuantization(config);
  const Json& modelopt = Member(hf_quant_config, "quantization");
  const bool has_modelopt = Member(modelopt, "quant_algo").is_string();
  if (found == nullptr && !has_modelopt) return result;
  const Json& own = found == nullptr ? kNull : *found;
  result.method = has_modelopt && found == nullptr ? "modelopt" : Text(own, "quant_method");
  if (result.method.empty()) result.method = "unknown";
  constexpr absl::string_view kMethods[] = {"fp8",   "compressed-tensors", "bitsandbytes",
                                            "mxfp4", "modelopt",           "fbgemm_fp8"};
  if (std::find(std::begin(kMethods), std::end(kMethods), result.method) == std::end(kMethods)) {
    result.refused = absl::StrCat("quant_method '", result.method,
                                  "' cannot be decoded: ", absl::StrJoin(kMethods, ", "), " can");
  } else if (result.method == "fp8") {
    const Json& blocks = Member(own, "weight_block_size");
    if (blocks.is_array()) AddGrid(blocks, &result);
  } else if (result.method == "compressed-tensors") {
    ReadSchemes(own, &result);
  }
  return result;
}

std::string WithQuantization(Json config, Layout layout, const std::vector<std::string>& ignored,
                             DataType weights) {
  switch (Info(layout).family) {
    case LayoutFamily::kFp8Tiles:
      config[kKeys[0]] = Fp8(ignored);
      break;
    case LayoutFamily::kCompressedTensors:
      config[kKeys[0]] = CompressedTensors(layout, ignored);
      break;
    default:
      config[kKeys[0]] = BitsAndBytes(layout, ignored, weights);
  }
  return DumpJson(config);
}

std::string WithIgnored(Json config, const std::vector<std::string>& modules) {
  if (const Json* const found = FindQuantization(config); found != nullptr && found->is_object()) {
    const std::string method = Text(*found, "quant_method");
    const char* const key = method == "compressed-tensors" || method == "modelopt" ? "ignore"
                            : method == "bitsandbytes" ? "llm_int8_skip_modules"
                                                       : "modules_to_not_convert";
    Json& list = const_cast<Json&>(*found)[key];
    if (!list.is_array()) list = Json::array();
    for (const std::string& module : modules) list.push_back(module);
  }
  return DumpJson(config);
}

std::string WithoutQuantization(Json config, DataType output) {
  for (const char* key : kKeys) config.erase(key);
  for (Json& part : config) {
    if (!part.is_object()) continue;
    for (const char* key : kKeys) part.erase(key);
  }
  const char* dtype = TorchName(output);
  config[config.contains("torch_dtype") ? "torch_dtype" : "dtype"] = dtype;
  SetDtype(dtype, &config);
  return DumpJson(config);
}

}  // namespace quantd::checkpoints
