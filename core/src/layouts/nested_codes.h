// The codes that bitsandbytes' -double has for absmax, of every step (rules/layouts.h).
#ifndef QUANTD_SRC_LAYOUTS_NESTED_CODES_H_
#define QUANTD_SRC_LAYOUTS_NESTED_CODES_H_

#include <array>
#include <cstdint>

#include "rules/layouts.h"

namespace quantd {

// Of `size` numbers, which are a block; returns the largest magnitude among them.
float EncodeNested(const float* values, size_t size, uint8_t* codes);

// What EncodeNested finds codes in: 64 KiB, made at the first use.
const std::array<uint8_t, rules::kNestedSteps>& NestedCodes();

}  // namespace quantd

#endif  // QUANTD_SRC_LAYOUTS_NESTED_CODES_H_
