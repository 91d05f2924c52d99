// bitsandbytes' text beside a weight of 4 bits, which its loader reads as JSON.
#ifndef QUANTD_SRC_LAYOUTS_QUANT_STATE_H_
#define QUANTD_SRC_LAYOUTS_QUANT_STATE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "quantd/layout.h"

namespace quantd {

// REQUIRES: one of bitsandbytes' layouts of 4 bits.
absl::string_view QuantStateSuffix(Layout layout);
std::string QuantStateText(const WeightPlan& plan, const WeightFacts& facts);

// A finite number as Python prints it: the shortest decimal that reads back as the same double.
std::string PythonFloat(double value);

}  // namespace quantd

#endif  // QUANTD_SRC_LAYOUTS_QUANT_STATE_H_
