#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "calibrate/methods.h"

namespace quantd {
namespace {

// Values that x in shared memory can get while it is read.
TEST(Calibrate, ARangeThatIsNoneHasAScaleOfItsType) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kMost = std::numeric_limits<float>::max();
  const std::vector<calibrate::Range> ranges = {{-kInfinity, 1}, {0, kInfinity},          {kNan, 1},
                                                {0, kNan},       {-kInfinity, kInfinity}, {1, -1},
                                                {-kMost, kMost}};
  using enum DataType;
  for (const DataType type :
       {kInt8, kUint8, kInt16, kUint16, kInt4, kUint4, kInt2, kUint2, kFloat8E4M3Fn, kFloat4E2M1}) {
    for (const bool symmetric : {false, true}) {
      const calibrate::Scaling scaling(type, symmetric);
      for (const calibrate::Range& range : ranges) {
        const calibrate::Scale scale = scaling.Of(range);
        EXPECT_TRUE(std::isfinite(scale.scale) && scale.scale > 0);
        EXPECT_GE(scale.zero_point, std::min(scaling.minimum(), 0));
        EXPECT_LE(scale.zero_point, scaling.maximum());
      }
    }
  }
}

}  // namespace
}  // namespace quantd
