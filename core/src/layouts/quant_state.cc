#include "layouts/quant_state.h"

#include <charconv>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace quantd {
namespace {

bool IsNf4(Layout layout) { return layout == Layout::kBnbNf4 || layout == Layout::kBnbNf4Double; }

absl::string_view TorchName(DataType type) {
  if (type == DataType::kFloat16) return "float16";
  return type == DataType::kBfloat16 ? "bfloat16" : "float32";
}

}  // namespace

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

}  // namespace quantd
