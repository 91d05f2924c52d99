// The errors of DynamicQuantize about x: the same on every target and with any number of threads.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "operations_random.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/targets.h"

namespace quantd {
namespace operations_errors_test {

bool Never() { return false; }

std::string ErrorOf(const OwnedTensor& x, int64_t block_size, DataType scale_type, int threads) {
  DynamicQuantizeParameters parameters;
  parameters.x = x.View();
  parameters.granularity = {.axis = 0, .block_size = block_size};
  parameters.scale_type = scale_type;
  const absl::StatusOr<DynamicQuantizePlan> plan = PlanDynamicQuantize(parameters);
  if (!plan.ok()) return plan.status().ToString();
  DynamicAnswer answer(*plan);
  return std::string(
      DynamicQuantize(*plan, parameters.x.bytes, Executor(threads), Never, answer.Output(), nullptr)
          .message());
}

// Whichever part finds a fault first, the error is that of the whole: a non-finite element comes
// before a scale that overflows, and of each kind the first one is named.
TEST(OperationsErrors, TheFirstOfAllParts) {
  OwnedTensor x(DataType::kFloat, {300'000});
  const auto error = [&] { return ErrorOf(x, 32, DataType::kUnspecified, 4); };
  const auto has = [&](const std::string& text) { return error().find(text) != std::string::npos; };
  EXPECT_EQ(error(), "");
  for (const int64_t at : {250'000, 96}) {
    x.Set(at, std::bit_cast<uint32_t>(3e38f));
    x.Set(at + 1, std::bit_cast<uint32_t>(-3e38f));
    EXPECT_TRUE(has(absl::StrCat("y_scale[", at / 32, "] overflows"))) << error();
  }
  for (const int64_t at : {299'999, 200'001}) {
    x.Set(at, std::bit_cast<uint32_t>(INFINITY));
    EXPECT_TRUE(has(absl::StrCat("x[", at, "] is inf"))) << error();
  }
}

// NEON's minimum of 0 and -0 is -0, that of other targets may be 0: a message shows 0.
TEST(OperationsErrors, RangesBeginAtZeroNotMinusZero) {
  OwnedTensor x(DataType::kFloat, {512});
  for (int64_t i = 0; i < x.elements; ++i) x.Set(i, std::bit_cast<uint32_t>(-0.0f));
  x.Set(130, 0x00010000);  // a denormal
  for (const std::string& target : SupportedTargets()) {
    EXPECT_TRUE(SelectTarget(target).ok());
    EXPECT_EQ(ErrorOf(x, 64, DataType::kFloat16, 1),
              "x has values from 0 to 9.18355e-41, their y_scale[2] underflows to 0 in FLOAT16")
        << target;
  }
  EXPECT_TRUE(SelectTarget("").ok());
}

}  // namespace operations_errors_test
}  // namespace quantd
