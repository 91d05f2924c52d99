#include "layouts/constants.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "layouts/encode_region.h"
#include "layouts/pieces.h"

namespace quantd {
namespace {

template <typename Values>
std::string BytesOf(const Values& values) {
  return std::string(reinterpret_cast<const char*>(&values), sizeof(values));
}

std::string Element(DataType type, float value) {
  std::string bytes(static_cast<size_t>(Info(type).bits / 8), '\0');
  StoreElement(type, value, reinterpret_cast<uint8_t*>(bytes.data()));
  return bytes;
}

absl::string_view TorchName(DataType type) {
  if (type == DataType::kFloat16) return "float16";
  return type == DataType::kBfloat16 ? "bfloat16" : "float32";
}

}  // namespace

std::string ConstantBytes(const WeightPlan& plan, const WeightFacts& facts, Role role) {
  switch (role) {
    case Role::kTensorScale:
      return Element(plan.type, TensorScale(plan, facts));
    case Role::kGlobalScale:
      return Element(DataType::kFloat, rules::GlobalScale(plan.type, facts.largest));
    case Role::kShape:
      return BytesOf(std::array<int64_t, 2>{plan.rows, plan.columns});
    case Role::kMap:
      return IsNf4(plan.layout) ? BytesOf(rules::kNf4) : BytesOf(rules::kFp4);
    case Role::kNestedMap:
      return BytesOf(rules::MakeNestedMap());
    case Role::kState:
      return QuantStateText(plan, facts);
    default:
      return std::string(1, '\0');
  }
}

absl::string_view QuantStateSuffix(Layout layout) {
  return IsNf4(layout) ? ".quant_state.bitsandbytes__nf4" : ".quant_state.bitsandbytes__fp4";
}

std::string QuantStateText(const WeightPlan& plan, const WeightFacts& facts) {
  std::string text = absl::StrCat(R"({"quant_type": ")", IsNf4(plan.layout) ? "nf4" : "fp4",
                                  R"(", "blocksize": 64, "dtype": ")", TorchName(plan.type),
                                  R"(", "shape": [)", absl::StrJoin(plan.shape, ", "), "]");
  if (NeedsFacts(plan.layout)) {
    absl::StrAppend(&text, R"(, "nested_blocksize": 256, "nested_dtype": "float32", )",
                    R"("nested_offset": )", PythonFloat(static_cast<double>(facts.offset)));
  }
  return text + "}";
}

std::string PythonFloat(double value) {
  const auto text = [value](std::chars_format format) {
    char buffer[64];
    return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value, format).ptr);
  };
  // An exponent is written only from 10^16 on and below 10^-4.
  std::string scientific = text(std::chars_format::scientific);
  const int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  if (exponent < -4 || exponent >= 16) return scientific;
  std::string fixed = text(std::chars_format::fixed);
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

const std::array<uint8_t, rules::kNestedSteps>& NestedCodes() {
  static const std::array<uint8_t, rules::kNestedSteps> kCodes = [] {
    std::array<uint8_t, rules::kNestedSteps> codes;
    const std::array<float, 256> map = rules::MakeNestedMap();
    // Codes are ascending, so a binary search finds the end of each.
    for (int begin = 0; begin < rules::kNestedSteps;) {
      const uint8_t code = rules::NestedCode(map, begin);
      int end = begin + 1;
      for (int most = rules::kNestedSteps; end < most;) {
        const int middle = end + (most - end) / 2;
        if (rules::NestedCode(map, middle) == code) {
          end = middle + 1;
        } else {
          most = middle;
        }
      }
      std::fill(codes.begin() + begin, codes.begin() + end, code);
      begin = end;
    }
    return codes;
  }();
  return kCodes;
}

}  // namespace quantd
