// Difficult weights for layouts, and calls of the library over them in memory.
#ifndef QUANTD_TESTS_CORE_LAYOUTS_WEIGHTS_H_
#define QUANTD_TESTS_CORE_LAYOUTS_WEIGHTS_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "quantd/convert_weight.h"

namespace quantd {

using ByteVector = std::vector<uint8_t>;

inline constexpr DataType kWeightTypes[] = {DataType::kFloat, DataType::kFloat16,
                                            DataType::kBfloat16};

// How a call reads and writes its bytes.
enum class Access : uint8_t { kMemory, kPieces };

// MeasureWeight and EncodeWeight, and DecodeWeight: return the parts or the weight, or an error.
struct Encoded {
  absl::Status status;
  WeightFacts facts;
  std::vector<ByteVector> parts;
};
Encoded Encode(const WeightPlan& plan, const ByteVector& weight, const Executor& executor,
               Access access = Access::kMemory);
// Without MeasureWeight.
Encoded EncodeWith(const WeightPlan& plan, const WeightFacts& facts, const ByteVector& weight,
                   const Executor& executor, Access access = Access::kMemory);
absl::StatusOr<ByteVector> Decode(const WeightPlan& plan, const WeightFacts& facts,
                                  const std::vector<ByteVector>& parts, DataType output,
                                  const Executor& executor, Access access = Access::kMemory);

// The values of packed elements, and back.
std::vector<float> ToFloats(DataType type, const ByteVector& bytes);
ByteVector FromFloats(DataType type, const std::vector<float>& values);

// The name of a case.
std::string LayoutName(const testing::TestParamInfo<Layout>& info);

// The difference between two byte strings, for a message; empty if they are equal.
std::string Difference(const ByteVector& got, const ByteVector& want);

}  // namespace quantd

#endif  // QUANTD_TESTS_CORE_LAYOUTS_WEIGHTS_H_
