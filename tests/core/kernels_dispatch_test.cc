// Which target is used, and how to force another one.
#include <cstdlib>

#include "gmock/gmock.h"
#include "kernels/find_kernel.h"
#include "kernels_test_util.h"

namespace quantd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Targets, ScalarIsAlwaysThereAndLast) {
  const std::vector<std::string> names = SupportedTargets();
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.back(), "scalar");
}

TEST(Targets, SelectForcesOneAndEmptyIsTheBest) {
  for (const std::string& name : SupportedTargets()) {
    ASSERT_TRUE(SelectTarget(name).ok());
    EXPECT_EQ(CurrentTarget(), name);
    EXPECT_EQ(&Kernels(), FindKernels(name.c_str()));
  }
  ASSERT_TRUE(SelectTarget("").ok());
  EXPECT_EQ(CurrentTarget(), SupportedTargets().front());
}

TEST(Targets, AnUnknownNameListsTheValidOnes) {
  const std::string before(CurrentTarget());
  const absl::Status status = SelectTarget("sse9");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const std::string& name : SupportedTargets()) {
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("sse9"), HasSubstr(name)));
  }
  EXPECT_EQ(CurrentTarget(), before);
  EXPECT_EQ(FindKernels("sse9"), nullptr);
}

TEST(Targets, TheEnvironmentIsChecked) {
  ASSERT_EQ(setenv("QUANTD_SIMD", "sse9", 1), 0);
  const absl::Status status = CheckEnvironmentTarget();
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("QUANTD_SIMD"), HasSubstr("scalar")));
  ASSERT_EQ(setenv("QUANTD_SIMD", "scalar", 1), 0);
  EXPECT_TRUE(CheckEnvironmentTarget().ok());
  ASSERT_EQ(unsetenv("QUANTD_SIMD"), 0);
  EXPECT_TRUE(CheckEnvironmentTarget().ok());
}

// Every type that Quantize writes or Dequantize reads has a kernel on every target.
TEST(Targets, EveryTypeFindsItsKernels) {
  for (const std::string& name : SupportedTargets()) {
    const KernelTable& table = *FindKernels(name.c_str());
    for (const DataTypeInfo& info : kDataTypes) {
      if (info.kind == DataTypeKind::kFloat || info.kind == DataTypeKind::kExponent) continue;
      for (const ScaleMode mode : {ScaleMode::kRuns, ScaleMode::kPerElement}) {
        EXPECT_NE(FindDequantize(table, info.type, mode), nullptr) << name << " " << info.name;
        if (info.type == DataType::kInt32) continue;
        const bool is_integer = info.kind == DataTypeKind::kInteger;
        for (const Quotient quotient : {Quotient::kDivide, Quotient::kGivenFloat16,
                                        Quotient::kGivenBfloat16, Quotient::kReciprocal}) {
          if (quotient == Quotient::kReciprocal && !(is_integer && info.bits <= 8)) continue;
          EXPECT_NE(FindQuantize(table, quotient, ZeroPointOrder::kAfterRounding, info.type, mode),
                    nullptr)
              << name << " " << info.name;
        }
        if (!is_integer) continue;
        EXPECT_NE(FindQuantize(table, Quotient::kDivide, ZeroPointOrder::kBeforeRounding, info.type,
                               mode),
                  nullptr)
            << name << " " << info.name;
      }
    }
  }
}

}  // namespace
}  // namespace quantd
