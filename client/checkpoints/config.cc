#include "checkpoints/config.h"

#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

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

Json BitsAndBytes(Layout layout, const std::vector<std::string>& ignored, DataType weights) {
  const bool eight = layout == Layout::kBnbInt8;
  const bool nf4 = layout == Layout::kBnbNf4 || layout == Layout::kBnbNf4Double;
  const bool twice = layout == Layout::kBnbNf4Double || layout == Layout::kBnbFp4Double;
  const char* type = weights == DataType::kBfloat16  ? "bfloat16"
                     : weights == DataType::kFloat16 ? "float16"
                                                     : "float32";
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

}  // namespace

std::string QuantMethod(const Json& config) {
  if (!config.is_object()) return "";
  const Json* found = FindConfig(config);
  for (auto it = config.begin(); found == nullptr && it != config.end(); ++it) {
    if (it->is_object()) found = FindConfig(*it);
  }
  if (found == nullptr) return "";
  const auto quant_method = found->is_object() ? found->find("quant_method") : found->end();
  if (!found->is_object() || quant_method == found->end() || !quant_method->is_string())
    return "unknown";
  return quant_method->get<std::string>();
}

bool CanDecode(absl::string_view quant_method) {
  return quant_method == "fp8" || quant_method == "compressed-tensors" ||
         quant_method == "bitsandbytes";
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

std::string WithoutQuantization(Json config) {
  for (const char* key : kKeys) config.erase(key);
  for (Json& part : config) {
    if (!part.is_object()) continue;
    for (const char* key : kKeys) part.erase(key);
  }
  return DumpJson(config);
}

}  // namespace quantd::checkpoints
