// AddErrors against the rules of the error report, element by element.
#include "kernels/find_kernel.h"
#include "kernels_test_util.h"
#include "rules/elements.h"

namespace quantd {
namespace {

struct Case {
  DataType type;
  Quotient quotient;
  ZeroPointOrder order;
};

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const DataTypeInfo& info : kDataTypes) {
    const bool is_integer = info.kind == DataTypeKind::kInteger;
    if (info.kind == DataTypeKind::kFloat || info.kind == DataTypeKind::kExponent) continue;
    if (info.type == DataType::kInt32) continue;
    for (const Quotient quotient : {Quotient::kReciprocal, Quotient::kDivide,
                                    Quotient::kGivenFloat16, Quotient::kGivenBfloat16}) {
      if (quotient == Quotient::kReciprocal && !(is_integer && info.bits <= 8)) continue;
      cases.push_back({info.type, quotient, ZeroPointOrder::kAfterRounding});
    }
    if (is_integer)
      cases.push_back({info.type, Quotient::kDivide, ZeroPointOrder::kBeforeRounding});
  }
  return cases;
}

TEST(AddErrors, FollowsTheRules) {
  std::mt19937 random = SeededRandom(20240606);
  for (const Case& c : AllCases()) {
    const DataTypeInfo& info = Info(c.type);
    const bool is_integer = info.kind == DataTypeKind::kInteger;
    rules::ElementRule rule;
    rule.output_type = c.type;
    if (c.quotient == Quotient::kGivenFloat16) rule.precision = DataType::kFloat16;
    if (c.quotient == Quotient::kGivenBfloat16) rule.precision = DataType::kBfloat16;
    rule.zero_point_order = c.order;
    rule.minimum = static_cast<int32_t>(info.minimum);
    rule.maximum = static_cast<int32_t>(info.maximum);
    for (const size_t run :
         {SIZE_MAX / 2, size_t{32}, size_t{49}, size_t{16}, size_t{7}, size_t{1}, size_t{0}}) {
      const bool per_element = run == 0;
      const bool is_int32 = random() % 2 == 0;
      const size_t size = 1 + random() % 700;
      const size_t first = per_element ? 0 : random() % std::min<size_t>(run, 5);
      std::vector<float> scale(size + 1), zero_point(size + 1);
      for (size_t i = 0; i <= size; ++i) {
        scale[i] = (random() % 2 == 0 ? 0.25f : -0.3f) * static_cast<float>(1 + random() % 3);
        if (rule.precision != DataType::kFloat) scale[i] = 0.5f;
        if (is_integer) {
          const auto span = static_cast<uint32_t>(info.maximum - info.minimum + 1);
          zero_point[i] = static_cast<float>(info.minimum + static_cast<int64_t>(random() % span));
        } else if (info.kind == DataTypeKind::kMiniFloat) {
          zero_point[i] = static_cast<float>(random() % 5) / 2;
        }
      }
      rule.has_zero_point = true;
      Bytes x(size * sizeof(float), 1);
      Bytes int32(size * sizeof(int32_t), 3);
      std::vector<uint8_t> codes;
      ErrorSums want;
      for (size_t i = 0; i < size; ++i) {
        const size_t k = per_element ? i : (first + i) / run;
        float value = HardValue(random, scale[k]);
        if (std::isfinite(value)) value = std::clamp(value, -1e5f, 1e5f);
        if (is_int32) {
          const int32_t integer = static_cast<int32_t>(random()) >> random() % 32;
          int32.Set(i, integer);
          value = static_cast<float>(integer);
        }
        x.Set(i, value);
        const double exact =
            is_int32 ? static_cast<double>(int32.Get<int32_t>(i)) : static_cast<double>(value);
        const auto element = rules::QuantizeElement(rule, value, scale[k], zero_point[k]);
        uint32_t code = element.code;
        if (is_integer && info.bits < 8) {
          code = static_cast<uint32_t>(DecodeInteger(c.type, code));
        }
        codes.push_back(static_cast<uint8_t>(code));
        if (info.bits == 16) codes.push_back(static_cast<uint8_t>(code >> 8));
        want.saturated_elements += element.saturated;
        if (!std::isfinite(value)) {
          ++want.non_finite_elements;
          continue;
        }
        const double decoded = DecodeFloat(c.type, element.code);
        const double error =
            exact - (decoded - static_cast<double>(zero_point[k])) * static_cast<double>(scale[k]);
        ++want.finite_elements;
        want.signal += exact * exact;
        want.noise += error * error;
        want.max_absolute_error = std::max(want.max_absolute_error, std::fabs(error));
      }
      ErrorTile tile;
      tile.x = x.data();
      if (is_int32) tile.int32 = int32.data();
      tile.codes = codes.data();
      tile.size = size;
      tile.mode = per_element ? ScaleMode::kPerElement : ScaleMode::kRuns;
      tile.first = first;
      tile.run = per_element ? SIZE_MAX : run;
      tile.division = DivisionOf(c.quotient, c.order);
      tile.encoder = EncoderOf(c.type);
      tile.decoder = DecoderOf(c.type);
      tile.scale = scale.data();
      tile.dequantize_scale = scale.data();
      tile.zero_point = zero_point.data();
      tile.minimum = rule.minimum;
      tile.maximum = rule.maximum;
      ErrorSums scalar;
      AddErrors(ScalarKernels(), tile, scalar);
      for (const KernelTable* table : TablesUnderTest()) {
        const std::string what = std::string(table->name) + " " + std::string(info.name) +
                                 " quotient " + std::to_string(static_cast<int>(c.quotient)) +
                                 " order " + std::to_string(static_cast<int>(c.order)) + " run " +
                                 std::to_string(run) + (is_int32 ? " INT32" : "");
        ErrorSums got;
        AddErrors(*table, tile, got);
        EXPECT_EQ(got.finite_elements, want.finite_elements) << what;
        EXPECT_EQ(got.non_finite_elements, want.non_finite_elements) << what;
        EXPECT_EQ(got.saturated_elements, want.saturated_elements) << what;
        if (std::isnan(want.noise)) {  // NaN codes of FLOAT8
          EXPECT_TRUE(std::isnan(got.noise)) << what;
          EXPECT_TRUE(std::isnan(got.max_absolute_error)) << what;
          continue;
        }
        EXPECT_NEAR(got.signal, want.signal, want.signal * 1e-9) << what;
        EXPECT_NEAR(got.noise, want.noise, want.noise * 1e-9) << what;
        EXPECT_EQ(got.max_absolute_error, want.max_absolute_error) << what;
        // All targets add in the same order.
        EXPECT_EQ(got.signal, scalar.signal) << what;
        EXPECT_EQ(got.noise, scalar.noise) << what;
      }
    }
  }
}

}  // namespace
}  // namespace quantd
