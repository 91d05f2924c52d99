// Weights in layouts as plain loops over rules/layouts.h, one part at a time, to compare with the
// passes over pieces.
#ifndef QUANTD_TESTS_CORE_LAYOUTS_ORACLE_H_
#define QUANTD_TESTS_CORE_LAYOUTS_ORACLE_H_

#include <cstdint>
#include <vector>

#include "quantd/layout.h"

namespace quantd::oracle {

using ByteVector = std::vector<uint8_t>;

// The parts of a weight without faults, in the order of WeightParts.
std::vector<ByteVector> EncodeWeight(const WeightPlan& plan, const WeightFacts& facts,
                                     const ByteVector& weight);

// The weight as `output`.
ByteVector DecodeWeight(const WeightPlan& plan, const WeightFacts& facts,
                        const std::vector<ByteVector>& parts, DataType output);

// max |x|, and bitsandbytes' mean of absmax (in the order of blocks, in double).
WeightFacts MeasureWeight(const WeightPlan& plan, const ByteVector& weight);

// The values of packed elements, and back.
std::vector<float> ToFloats(DataType type, const ByteVector& bytes);
ByteVector FromFloats(DataType type, const std::vector<float>& values);

}  // namespace quantd::oracle

#endif  // QUANTD_TESTS_CORE_LAYOUTS_ORACLE_H_
