// Parts of a weight that are the same whatever its elements, or follow from facts.
#ifndef QUANTD_SRC_LAYOUTS_CONSTANTS_H_
#define QUANTD_SRC_LAYOUTS_CONSTANTS_H_

#include <string>

#include "layouts/geometry.h"
#include "quantd/layout.h"

namespace quantd {

// The bytes of a part. REQUIRES: !IsCut(role).
std::string ConstantBytes(const WeightPlan& plan, const WeightFacts& facts, Role role);

}  // namespace quantd

#endif  // QUANTD_SRC_LAYOUTS_CONSTANTS_H_
