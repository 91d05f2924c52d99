// The codes of absmax in bitsandbytes' -double, for every step (rules/layouts.h).
#ifndef QUANTD_SRC_LAYOUTS_NESTED_CODES_H_
#define QUANTD_SRC_LAYOUTS_NESTED_CODES_H_

#include <array>
#include <cstdint>

#include "rules/layouts.h"

namespace quantd {

// Encodes `size` numbers, which are a block; returns the largest magnitude.
float EncodeNested(const float* values, size_t size, uint8_t* codes);

// The table of EncodeNested: 64 KiB, made on first use.
const std::array<uint8_t, rules::kNestedSteps>& NestedCodes();

}  // namespace quantd

#endif  // QUANTD_SRC_LAYOUTS_NESTED_CODES_H_
