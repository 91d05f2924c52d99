// What does not depend on a weight's elements, or only through facts: whole parts, bitsandbytes'
// text, and its table of codes.
#ifndef QUANTD_SRC_LAYOUTS_CONSTANTS_H_
#define QUANTD_SRC_LAYOUTS_CONSTANTS_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "layouts/geometry.h"
#include "quantd/layout.h"
#include "rules/layouts.h"

namespace quantd {

// The bytes of a part. REQUIRES: !IsCut(role).
std::string ConstantBytes(const WeightPlan& plan, const WeightFacts& facts, Role role);

// bitsandbytes' text for a 4-bit weight, which its loader reads as JSON.
absl::string_view QuantStateSuffix(Layout layout);
std::string QuantStateText(const WeightPlan& plan, const WeightFacts& facts);

// A finite number as printed by Python: the shortest decimal that reads back as the same double.
std::string PythonFloat(double value);

// The codes of absmax in bitsandbytes' -double, for every step (rules/layouts.h): 64 KiB, made on
// first use.
const std::array<uint8_t, rules::kNestedSteps>& NestedCodes();

}  // namespace quantd

#endif  // QUANTD_SRC_LAYOUTS_CONSTANTS_H_
