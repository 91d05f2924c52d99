// Parts of a weight that do not depend on its elements, or only through facts.
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
