// bitsandbytes' text for a 4-bit weight, which its loader reads as JSON.
#ifndef QUANTD_SRC_LAYOUTS_QUANT_STATE_H_
#define QUANTD_SRC_LAYOUTS_QUANT_STATE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "quantd/layout.h"

namespace quantd {

// REQUIRES: one of bitsandbytes' 4-bit layouts.
absl::string_view QuantStateSuffix(Layout layout);
std::string QuantStateText(const WeightPlan& plan, const WeightFacts& facts);

// A finite number as printed by Python: the shortest decimal that reads back as the same double.
std::string PythonFloat(double value);

}  // namespace quantd

#endif  // QUANTD_SRC_LAYOUTS_QUANT_STATE_H_
