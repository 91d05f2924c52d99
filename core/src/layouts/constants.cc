#include "layouts/constants.h"

#include <array>
#include <cstdint>

#include "layouts/encode_region.h"
#include "layouts/pieces.h"
#include "layouts/quant_state.h"
#include "rules/layouts.h"

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
      return plan.layout == Layout::kBnbNf4 || plan.layout == Layout::kBnbNf4Double
                 ? BytesOf(rules::kNf4)
                 : BytesOf(rules::kFp4);
    case Role::kNestedMap:
      return BytesOf(rules::MakeNestedMap());
    case Role::kState:
      return QuantStateText(plan, facts);
    default:
      return std::string(1, '\0');
  }
}

}  // namespace quantd
