#include "operations_compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "oracle.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/field_error.h"
#include "quantd/quantize.h"
#include "quantd/targets.h"
#include "tensors.h"

namespace quantd {
namespace {

std::string Describe(const char* operation, const PlanBase& plan) {
  return absl::StrCat(operation, " ", std::string(Name(plan.input_type)), " to ",
                      std::string(Name(plan.output_type)), ", shape ", ShapeString(plan.shape),
                      ", blocks ", ShapeString(plan.block_shape), ", target ",
                      std::string(CurrentTarget()));
}

// The first difference between two results.
std::string Difference(absl::Span<const uint8_t> got, absl::Span<const uint8_t> wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (got[i] != wanted[i]) {
      return absl::StrCat("byte ", i, " of ", wanted.size(), " is ", got[i], ", not ", wanted[i]);
    }
  }
  return "";
}

void ExpectSameError(const QuantizationError& got, const QuantizationError& wanted) {
  const auto near = [](double a, double b) {
    return a == b || std::fabs(a - b) <= 1e-6 * std::fabs(b) || (std::isnan(a) && std::isnan(b));
  };
  // It is a logarithm: a relative error of 1e-6 is 4e-6 dB.
  EXPECT_TRUE(near(got.sqnr_db, wanted.sqnr_db) || std::fabs(got.sqnr_db - wanted.sqnr_db) < 4e-6)
      << got.sqnr_db << " " << wanted.sqnr_db;
  EXPECT_TRUE(near(got.mean_squared_error, wanted.mean_squared_error))
      << got.mean_squared_error << " " << wanted.mean_squared_error;
  EXPECT_TRUE(near(got.max_absolute_error, wanted.max_absolute_error))
      << got.max_absolute_error << " " << wanted.max_absolute_error;
  EXPECT_EQ(got.saturated_elements, wanted.saturated_elements);
  EXPECT_EQ(got.non_finite_elements, wanted.non_finite_elements);
}

// The pools are made once, as in a process that keeps them.
const Executor& SomeExecutor(Random& random) {
  static const auto* executors = new std::vector<std::unique_ptr<Executor>>([] {
    std::vector<std::unique_ptr<Executor>> made;
    for (int threads : {1, 2, 3, 5}) made.push_back(std::make_unique<Executor>(threads));
    return made;
  }());
  return *(*executors)[random.Below(static_cast<int64_t>(executors->size()))];
}

DataType MaybeType(Random& random) {
  return random.OneIn(2) ? DataType::kUnspecified : random.Of(kFloatTypes);
}

// Makes all NaNs in the bytes of floats the same.
void MakeNansAlike(DataType type, int64_t elements, std::vector<uint8_t>& bytes) {
  for (int64_t i = 0; i < elements; ++i) {
    if (std::isnan(DecodeFloat(type, LoadCode(type, bytes.data(), i)))) {
      StoreCode(type, bytes.data(), i, EncodeValue(type, NAN));
    }
  }
}

// y, made part by part with run(begin, end, place).
template <typename Run>
std::vector<uint8_t> InParts(Random& random, const PlanBase& plan, const Run& run) {
  std::vector<uint8_t> y(plan.output_bytes, 0xA5);
  const auto place = [&](int64_t at) { return y.data() + ByteSize(plan.output_type, at); };
  for (int64_t begin = 0, end = 0; begin < plan.elements; begin = end) {
    end = std::min(plan.elements, begin + 64 * (1 + random.Below(plan.elements / 128 + 2)));
    const absl::Status status =
        run(begin, end,
            absl::MakeSpan(place(begin), end == plan.elements ? y.data() + y.size() : place(end)));
    EXPECT_TRUE(status.ok()) << status;
  }
  return y;
}

}  // namespace

bool TryQuantize(Random& random, const Shape& shape, const RandomBlocks& blocks) {
  static constexpr DataType kInputs[] = {DataType::kFloat, DataType::kFloat, DataType::kFloat16,
                                         DataType::kBfloat16, DataType::kInt32};
  static constexpr DataType kScales[] = {DataType::kFloat,   DataType::kFloat,
                                         DataType::kFloat16, DataType::kBfloat16,
                                         DataType::kInt32,   DataType::kFloat8E8M0};
  const DataType output = random.Of(kQuantizedTypes);
  const OwnedTensor scale = RandomScale(random, random.Of(kScales), blocks.scale_shape, false);
  const OwnedTensor x =
      RandomInput(random, random.Of(kInputs), shape, &scale, output, random.OneIn(2));
  QuantizeParameters parameters;
  parameters.x = x.View();
  parameters.scale = scale.View();
  parameters.granularity = blocks.granularity;
  parameters.output_type = output;
  parameters.saturate = !random.OneIn(2);
  parameters.precision = random.OneIn(2) ? DataType::kUnspecified : MaybeType(random);
  parameters.report_error = random.OneIn(4);
  OwnedTensor zero_point;
  if (!random.OneIn(3)) {
    DataType type = output;
    const bool integer = Info(output).kind == DataTypeKind::kInteger;
    if (integer && random.OneIn(3)) {
      parameters.zero_point_order = ZeroPointOrder::kBeforeRounding;
      parameters.precision = DataType::kUnspecified;
      if (random.OneIn(2)) type = DataType::kInt32;
    }
    zero_point = RandomCodes(random, type, blocks.scale_shape);
    if (Info(output).kind == DataTypeKind::kFloat8) {
      std::fill(zero_point.bytes.begin(), zero_point.bytes.end(), uint8_t{0});
    }
    parameters.zero_point = zero_point.View();
  }
  absl::StatusOr<QuantizePlan> plan = PlanQuantize(parameters);
  if (!plan.ok()) {
    // Only the scales may be wrong in these requests.
    EXPECT_EQ(ErrorField(plan.status()), "scale") << plan.status();
    return false;
  }
  std::vector<uint8_t> wanted(plan->output_bytes);
  QuantizationError wanted_error;
  oracle::Quantize(*plan, x.bytes, absl::MakeSpan(wanted), &wanted_error);
  for (const std::string& target : SupportedTargets()) {
    EXPECT_TRUE(SelectTarget(target).ok());
    const Misaligned given(x.bytes, static_cast<size_t>(random.Below(64)));
    std::vector<uint8_t> y(plan->output_bytes, 0xA5);
    QuantizationError error;
    const absl::Status status =
        Quantize(*plan, given.bytes(), SomeExecutor(random), Never, absl::MakeSpan(y), &error);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(Difference(y, wanted), "")
        << Describe("Quantize", *plan) << ", scale " << Name(scale.type) << ", quotient "
        << static_cast<int>(plan->quotient);
    if (parameters.report_error) {
      SCOPED_TRACE(Describe("Quantize", *plan));
      ExpectSameError(error, wanted_error);
    }
    const std::vector<uint8_t> parts =
        InParts(random, *plan, [&](int64_t begin, int64_t end, absl::Span<uint8_t> place) {
          return QuantizeElements(*plan, given.bytes(), begin, end, SomeExecutor(random), Never,
                                  place);
        });
    EXPECT_EQ(Difference(parts, wanted), "") << Describe("QuantizeElements", *plan);
  }
  return true;
}

bool TryDequantize(Random& random, const Shape& shape, const RandomBlocks& blocks) {
  static constexpr DataType kScales[] = {DataType::kFloat,   DataType::kFloat,
                                         DataType::kFloat16, DataType::kBfloat16,
                                         DataType::kInt32,   DataType::kFloat8E8M0};
  const DataType input = random.OneIn(12) ? DataType::kInt32 : random.Of(kQuantizedTypes);
  const OwnedTensor scale =
      RandomScale(random, random.Of(kScales), blocks.scale_shape, random.OneIn(3));
  const OwnedTensor x = RandomCodes(random, input, shape);
  DequantizeParameters parameters;
  parameters.x = x.View();
  parameters.scale = scale.View();
  parameters.granularity = blocks.granularity;
  const bool scale_is_output = Info(scale.type).kind == DataTypeKind::kFloat;
  parameters.output_type = scale_is_output ? MaybeType(random) : random.Of(kFloatTypes);
  OwnedTensor zero_point;
  if (!random.OneIn(3)) {
    const bool integer = Info(input).kind == DataTypeKind::kInteger;
    zero_point = RandomCodes(random, integer && random.OneIn(3) ? DataType::kInt32 : input,
                             blocks.scale_shape);
    if (Info(input).kind == DataTypeKind::kFloat8) {
      std::fill(zero_point.bytes.begin(), zero_point.bytes.end(), uint8_t{0});
    }
    parameters.zero_point = zero_point.View();
  }
  OwnedTensor tensor_scale(DataType::kFloat, random.OneIn(2) ? Shape{} : Shape{1});
  if (random.OneIn(5)) {
    tensor_scale.Set(0, std::bit_cast<uint32_t>(random.Normal()));
    parameters.tensor_scale = tensor_scale.View();
  }
  absl::StatusOr<DequantizePlan> plan = PlanDequantize(parameters);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return false;
  std::vector<uint8_t> wanted(plan->output_bytes);
  oracle::Dequantize(*plan, x.bytes, absl::MakeSpan(wanted));
  MakeNansAlike(plan->output_type, plan->elements, wanted);
  for (const std::string& target : SupportedTargets()) {
    EXPECT_TRUE(SelectTarget(target).ok());
    const Misaligned given(x.bytes, static_cast<size_t>(random.Below(64)));
    std::vector<uint8_t> y(plan->output_bytes, 0xA5);
    const absl::Status status =
        Dequantize(*plan, given.bytes(), SomeExecutor(random), Never, absl::MakeSpan(y));
    EXPECT_TRUE(status.ok()) << status;
    MakeNansAlike(plan->output_type, plan->elements, y);
    EXPECT_EQ(Difference(y, wanted), "") << Describe("Dequantize", *plan);
    std::vector<uint8_t> parts =
        InParts(random, *plan, [&](int64_t begin, int64_t end, absl::Span<uint8_t> place) {
          return DequantizeElements(*plan, given.bytes(), begin, end, SomeExecutor(random), Never,
                                    place);
        });
    MakeNansAlike(plan->output_type, plan->elements, parts);
    EXPECT_EQ(Difference(parts, wanted), "") << Describe("DequantizeElements", *plan);
  }
  return true;
}

bool IsTheReference(Random& random, const DynamicQuantizeParameters& parameters,
                    const OwnedTensor& x) {
  absl::StatusOr<DynamicQuantizePlan> plan = PlanDynamicQuantize(parameters);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return false;
  DynamicAnswer wanted(*plan);
  QuantizationError wanted_error;
  const absl::Status wanted_status =
      oracle::DynamicQuantize(*plan, x.bytes, wanted.Output(), &wanted_error);
  for (const std::string& target : SupportedTargets()) {
    EXPECT_TRUE(SelectTarget(target).ok());
    const Misaligned given(x.bytes, static_cast<size_t>(random.Below(64)));
    DynamicAnswer got(*plan);
    QuantizationError error;
    const absl::Status status =
        DynamicQuantize(*plan, given.bytes(), SomeExecutor(random), Never, got.Output(), &error);
    EXPECT_EQ(status.ToString(), wanted_status.ToString());
    if (!status.ok()) continue;
    const std::string what =
        absl::StrCat(Describe("DynamicQuantize", *plan), ", scale ",
                     std::string(Name(plan->scale_type)), ", rule ", static_cast<int>(plan->rule));
    EXPECT_EQ(Difference(got.tensor_scale, wanted.tensor_scale), "") << what;
    EXPECT_EQ(Difference(got.scale, wanted.scale), "") << what;
    EXPECT_EQ(Difference(got.zero_point, wanted.zero_point), "") << what;
    EXPECT_EQ(Difference(got.y, wanted.y), "") << what;
    if (parameters.report_error) {
      SCOPED_TRACE(what);
      ExpectSameError(error, wanted_error);
    }
  }
  return wanted_status.ok();
}

bool TryDynamicQuantize(Random& random, const Shape& shape, const RandomBlocks& blocks) {
  static constexpr DataType kMicroscaling[] = {DataType::kFloat8E4M3Fn, DataType::kFloat8E5M2,
                                               DataType::kFloat6E2M3,   DataType::kFloat6E3M2,
                                               DataType::kFloat4E2M1,   DataType::kInt8};
  DynamicQuantizeParameters parameters;
  parameters.output_type = random.Of(kQuantizedTypes);
  parameters.scale_type = MaybeType(random);
  if (random.OneIn(4)) {
    parameters.scale_type = DataType::kFloat8E8M0;
    parameters.output_type = random.Of(kMicroscaling);
  } else if (random.OneIn(6)) {
    parameters.scale_type = DataType::kFloat8E4M3Fn;
    parameters.output_type = DataType::kFloat4E2M1;
  }
  const bool integer = Info(parameters.output_type).kind == DataTypeKind::kInteger;
  if (integer && random.OneIn(3)) parameters.symmetry = Symmetry::kSymmetric;
  if (integer && random.OneIn(3) && parameters.scale_type != DataType::kFloat8E8M0) {
    parameters.symmetry = Symmetry::kAsymmetric;
  }
  parameters.non_finite = random.OneIn(2) ? NonFinite::kReject : NonFinite::kIgnore;
  const bool finite = parameters.non_finite == NonFinite::kReject && !random.OneIn(10);
  OwnedTensor x =
      RandomInput(random, random.Of(kFloatTypes), shape, nullptr, parameters.output_type, finite);
  // Some blocks of zeros only, and some of one sign.
  if (random.OneIn(3) && x.elements > 0) {
    const int64_t begin = random.Below(x.elements);
    const int64_t end = begin + random.Below(x.elements - begin + 1);
    for (int64_t i = begin; i < end; ++i) x.Set(i, 0);
  }
  parameters.x = x.View();
  parameters.granularity = blocks.granularity;
  parameters.saturate = !random.OneIn(2);
  parameters.report_error = random.OneIn(4);
  return IsTheReference(random, parameters, x);
}

}  // namespace quantd
