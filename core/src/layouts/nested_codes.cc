#include "layouts/nested_codes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

namespace quantd {

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

float EncodeNested(const float* values, size_t size, uint8_t* codes) {
  float largest = 0;
  for (size_t i = 0; i < size; ++i) largest = std::max(largest, std::fabs(values[i]));
  if (largest == 0) {
    std::memset(codes, 0, size);
    return largest;
  }
  const std::array<uint8_t, rules::kNestedSteps>& code_of = NestedCodes();
  for (size_t i = 0; i < size; ++i) {
    codes[i] = code_of[static_cast<size_t>(rules::NestedStep(values[i], largest))];
  }
  return largest;
}

}  // namespace quantd
