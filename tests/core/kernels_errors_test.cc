// AddErrors on every target against the scalar loops, bit for bit; operations_test.cc compares
// those with the rules.
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

TEST(AddErrors, SameOnEveryTarget) {
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
        uint32_t code = rules::QuantizeElement(rule, value, scale[k], zero_point[k]).code;
        if (is_integer && info.bits < 8) {
          code = static_cast<uint32_t>(DecodeInteger(c.type, code));
        }
        codes.push_back(static_cast<uint8_t>(code));
        if (info.bits == 16) codes.push_back(static_cast<uint8_t>(code >> 8));
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
      ErrorSums want;
      AddErrors(ScalarKernels(), tile, want);
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
        // NaN codes of FLOAT8 make a NaN of both.
        EXPECT_EQ(std::isnan(got.noise), std::isnan(want.noise)) << what;
        EXPECT_EQ(std::isnan(got.max_absolute_error), std::isnan(want.max_absolute_error)) << what;
        if (std::isnan(want.noise)) continue;
        EXPECT_EQ(got.signal, want.signal) << what;
        EXPECT_EQ(got.noise, want.noise) << what;
        EXPECT_EQ(got.max_absolute_error, want.max_absolute_error) << what;
      }
    }
  }
}

}  // namespace
}  // namespace quantd
