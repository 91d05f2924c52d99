// What the local engine refuses.
#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quantd::cli {
namespace {

TEST(Engine, AWrongInstructionSetIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(MakeLocalEngine(1, "avx1024").status()));
}

// If the elements of a scale lie all over x, all scales must be kept at once: 16 bytes each.
TEST(Engine, ScalesThatTakeTooMuchMemoryAreRefused) {
  DynamicQuantizeParameters p;
  p.x = {DataType::kFloat, {16, 1 << 24}, {nullptr, uint64_t{1} << 30}};
  p.granularity = {.axis = 0, .block_size = 16};
  const absl::Status status = (*MakeLocalEngine(2, ""))->Run(p, {}, nullptr);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(::testing::HasSubstr("16777216 scales need 335544320 bytes"),
                               ::testing::HasSubstr("quantctl takes 167772160")));
}

}  // namespace
}  // namespace quantd::cli
