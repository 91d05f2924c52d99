// libquantd_core.so against the core that is linked here: random requests of every type,
// granularity and rule give the same bytes and the same errors. A failure prints the seed;
// QUANTD_TEST_SEED repeats it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "c_testing.h"
#include "operations_random.h"
#include "quantd/core.h"
#include "quantd/dequantize.h"
#include "quantd/field_error.h"
#include "quantd/quantize.h"

namespace quantd {
namespace {

quantd_parameters ParametersOf(int32_t operation, const OwnedTensor& x, DataType output,
                               const Granularity& granularity) {
  quantd_parameters parameters = {};
  parameters.struct_size = sizeof(parameters);
  parameters.operation = operation;
  parameters.x_type = static_cast<int32_t>(x.type);
  parameters.x_rank = static_cast<int32_t>(x.shape.size());
  parameters.x_shape = x.shape.data();
  parameters.output_type = static_cast<int32_t>(output);
  parameters.has_axis = granularity.axis.has_value();
  parameters.axis = granularity.axis.value_or(0);
  parameters.block_size = granularity.block_size;
  parameters.block_shape = granularity.block_shape.data();
  parameters.block_shape_rank = static_cast<int32_t>(granularity.block_shape.size());
  return parameters;
}

// The result of a plan made of `parameters`, run when the caller's scales are gone.
struct Answer {
  int32_t code = QUANTD_INTERNAL;
  std::string field, message;
  std::vector<uint8_t> y, scale, zero_point, tensor_scale;
  quantd_report report = {};
};

std::unique_ptr<quantd_plan, decltype(&quantd_plan_free)> MakePlan(
    const quantd_parameters& parameters, Answer& answer) {
  quantd_error error = {};
  error.struct_size = sizeof(error);
  quantd_plan* plan = nullptr;
  answer.code = quantd_plan_create(&parameters, &plan, &error);
  answer.field = error.field;
  answer.message = error.message;
  return {plan, quantd_plan_free};
}

void RunPlan(const quantd_plan* plan, bool report, int threads, const OwnedTensor& x,
             Answer& answer) {
  quantd_error error = {};
  error.struct_size = sizeof(error);
  quantd_plan_info info = {};
  info.struct_size = sizeof(info);
  ASSERT_EQ(quantd_plan_describe(plan, &info, &error), QUANTD_OK) << error.message;
  answer.y.assign(info.y_size, 0xA5);
  answer.scale.assign(info.scale_size, 0xA5);
  answer.zero_point.assign(info.zero_point_size, 0xA5);
  answer.tensor_scale.assign(info.tensor_scale_size, 0xA5);
  quantd_call call = {};
  call.struct_size = sizeof(call);
  call.threads = threads;
  call.x = x.bytes.data();
  call.x_size = x.bytes.size();
  call.y = answer.y.data();
  call.y_size = answer.y.size();
  call.scale = answer.scale.data();
  call.scale_size = answer.scale.size();
  call.zero_point = answer.zero_point.data();
  call.zero_point_size = answer.zero_point.size();
  call.tensor_scale = answer.tensor_scale.data();
  call.tensor_scale_size = answer.tensor_scale.size();
  call.report = report ? &answer.report : nullptr;
  answer.code = quantd_plan_run(plan, &call, &error);
  answer.field = error.field;
  answer.message = error.message;
}

void ExpectSame(const Answer& got, const absl::Status& status) {
  EXPECT_EQ(got.code, static_cast<int32_t>(status.code())) << got.message << " / " << status;
  EXPECT_EQ(got.field, ErrorField(status));
  EXPECT_EQ(got.message, std::string(status.message()).substr(0, 959));
}

void ExpectSame(const quantd_report& got, const QuantizationError& wanted) {
  EXPECT_EQ(got.saturated_elements, wanted.saturated_elements);
  EXPECT_EQ(got.non_finite_elements, wanted.non_finite_elements);
  if (!std::isnan(wanted.max_absolute_error)) {
    EXPECT_EQ(got.max_absolute_error, wanted.max_absolute_error);
  }
}

class CTest : public testing::TestWithParam<int> {
 protected:
  CTest() {
    const char* const seed = std::getenv("QUANTD_TEST_SEED");
    seed_ = seed != nullptr ? static_cast<uint32_t>(std::strtoul(seed, nullptr, 10))
                            : std::random_device()();
  }
  uint32_t seed_;
};

void QuantizeOnce(Random& random) {
  const Shape shape = RandomShape(random, 5000);
  const DataType output = random.Of(kQuantizedTypes);
  const RandomBlocks blocks = MakeBlocks(random, shape, false);
  OwnedTensor scale = RandomScale(random, random.Of(kFloatTypes), blocks.scale_shape, false);
  const OwnedTensor x = RandomInput(random, random.Of(kFloatTypes), shape, &scale, output, false);
  std::optional<OwnedTensor> zero_point;
  if (random.OneIn(2)) {
    zero_point.emplace(output, blocks.scale_shape);
    if (Info(output).kind != DataTypeKind::kFloat8) {
      zero_point = RandomCodes(random, output, blocks.scale_shape);
    }
  }
  quantd_parameters parameters = ParametersOf(QUANTD_QUANTIZE, x, output, blocks.granularity);
  const quantd_tensor c_scale = TensorOf(scale);
  parameters.scale = &c_scale;
  quantd_tensor c_zero_point = {};
  if (zero_point.has_value()) {
    c_zero_point = TensorOf(*zero_point);
    parameters.zero_point = &c_zero_point;
  }
  parameters.saturate = static_cast<int32_t>(random.Below(3));
  parameters.precision =
      static_cast<int32_t>(random.OneIn(2) ? DataType::kUnspecified : random.Of(kFloatTypes));
  parameters.zero_point_order = static_cast<int32_t>(random.OneIn(4) ? 2 : random.Below(2));
  parameters.report_error = static_cast<int32_t>(random.Below(2));

  QuantizeParameters wanted{.x = x.View(),
                            .scale = scale.View(),
                            .output_type = output,
                            .granularity = blocks.granularity,
                            .saturate = parameters.saturate != QUANTD_SATURATE_OFF,
                            .precision = static_cast<DataType>(parameters.precision),
                            .report_error = parameters.report_error != 0};
  if (zero_point.has_value()) wanted.zero_point = zero_point->View();
  if (parameters.zero_point_order == QUANTD_ZERO_POINT_ORDER_BEFORE_ROUNDING) {
    wanted.zero_point_order = ZeroPointOrder::kBeforeRounding;
  }
  const absl::StatusOr<QuantizePlan> plan = PlanQuantize(wanted);
  Answer answer;
  const auto c_plan = MakePlan(parameters, answer);
  ExpectSame(answer, plan.status());
  if (!plan.ok()) return;
  std::vector<uint8_t> y(plan->output_bytes);
  QuantizationError error;
  ASSERT_TRUE(Quantize(*plan, wanted.x.bytes, One(), Never, absl::MakeSpan(y), &error).ok());
  // A plan keeps no pointer to what it was made from.
  std::fill(scale.bytes.begin(), scale.bytes.end(), 0xFF);
  if (zero_point.has_value()) std::fill(zero_point->bytes.begin(), zero_point->bytes.end(), 0xFF);
  RunPlan(c_plan.get(), wanted.report_error, static_cast<int>(random.Below(4)), x, answer);
  ASSERT_EQ(answer.code, QUANTD_OK) << answer.message;
  EXPECT_EQ(answer.y, y);
  if (wanted.report_error) ExpectSame(answer.report, error);
}

void DequantizeOnce(Random& random) {
  const Shape shape = RandomShape(random, 5000);
  const RandomBlocks blocks = MakeBlocks(random, shape, false);
  const OwnedTensor x = RandomCodes(random, random.Of(kQuantizedTypes), shape);
  OwnedTensor scale = RandomScale(random, random.Of(kFloatTypes), blocks.scale_shape, true);
  OwnedTensor tensor_scale(DataType::kFloat, {});
  tensor_scale.Set(0, EncodeValue(DataType::kFloat, random.Between(0.1f, 3)));
  quantd_parameters parameters =
      ParametersOf(QUANTD_DEQUANTIZE, x, random.Of(kFloatTypes), blocks.granularity);
  const quantd_tensor c_scale = TensorOf(scale);
  const quantd_tensor c_tensor_scale = TensorOf(tensor_scale);
  parameters.scale = &c_scale;
  DequantizeParameters wanted{.x = x.View(),
                              .scale = scale.View(),
                              .output_type = static_cast<DataType>(parameters.output_type),
                              .granularity = blocks.granularity};
  if (random.OneIn(2)) {
    parameters.tensor_scale = &c_tensor_scale;
    wanted.tensor_scale = tensor_scale.View();
  }
  const absl::StatusOr<DequantizePlan> plan = PlanDequantize(wanted);
  Answer answer;
  const auto c_plan = MakePlan(parameters, answer);
  ExpectSame(answer, plan.status());
  if (!plan.ok()) return;
  std::vector<uint8_t> y(plan->output_bytes);
  ASSERT_TRUE(Dequantize(*plan, wanted.x.bytes, One(), Never, absl::MakeSpan(y)).ok());
  std::fill(scale.bytes.begin(), scale.bytes.end(), 0xFF);
  RunPlan(c_plan.get(), false, static_cast<int>(random.Below(4)), x, answer);
  ASSERT_EQ(answer.code, QUANTD_OK) << answer.message;
  EXPECT_EQ(answer.y, y);
}

void DynamicQuantizeOnce(Random& random) {
  const Shape shape = RandomShape(random, 5000);
  const DataType output = random.Of(kQuantizedTypes);
  const RandomBlocks blocks = MakeBlocks(random, shape, true);
  const OwnedTensor x =
      RandomInput(random, random.Of(kFloatTypes), shape, nullptr, output, !random.OneIn(4));
  static constexpr DataType kScaleTypes[] = {DataType::kUnspecified, DataType::kFloat16,
                                             DataType::kBfloat16, DataType::kFloat8E8M0,
                                             DataType::kFloat8E4M3Fn};
  quantd_parameters parameters =
      ParametersOf(QUANTD_DYNAMIC_QUANTIZE, x, output, blocks.granularity);
  parameters.scale_type = static_cast<int32_t>(random.Of(kScaleTypes));
  parameters.symmetry = static_cast<int32_t>(random.Below(3));
  parameters.non_finite = static_cast<int32_t>(random.Below(3));
  parameters.saturate = static_cast<int32_t>(random.Below(3));
  parameters.report_error = static_cast<int32_t>(random.Below(2));
  const DynamicQuantizeParameters wanted{
      .x = x.View(),
      .output_type = output,
      .granularity = blocks.granularity,
      .saturate = parameters.saturate != QUANTD_SATURATE_OFF,
      .scale_type = static_cast<DataType>(parameters.scale_type),
      .symmetry = static_cast<Symmetry>(parameters.symmetry),
      .non_finite = parameters.non_finite == QUANTD_NON_FINITE_IGNORE ? NonFinite::kIgnore
                                                                      : NonFinite::kReject,
      .report_error = parameters.report_error != 0};
  const absl::StatusOr<DynamicQuantizePlan> plan = PlanDynamicQuantize(wanted);
  Answer answer;
  const auto c_plan = MakePlan(parameters, answer);
  ExpectSame(answer, plan.status());
  if (!plan.ok()) return;
  DynamicAnswer expected(*plan);
  QuantizationError error;
  const absl::Status status =
      DynamicQuantize(*plan, wanted.x.bytes, One(), Never, expected.Output(), &error);
  RunPlan(c_plan.get(), wanted.report_error, static_cast<int>(random.Below(4)), x, answer);
  ExpectSame(answer, status);
  if (!status.ok()) return;
  EXPECT_EQ(answer.y, expected.y);
  EXPECT_EQ(answer.scale, expected.scale);
  EXPECT_EQ(answer.zero_point, expected.zero_point);
  EXPECT_EQ(answer.tensor_scale, expected.tensor_scale);
  if (wanted.report_error) ExpectSame(answer.report, error);
}

TEST_F(CTest, GivesWhatTheCoreGives) {
  SCOPED_TRACE("QUANTD_TEST_SEED=" + std::to_string(seed_));
  Random random(seed_);
  for (int i = 0; i < 1000 && !HasFailure(); ++i) {
    QuantizeOnce(random);
    DequantizeOnce(random);
    DynamicQuantizeOnce(random);
  }
}

// One plan, which many threads run at once over tensors that need all threads of the pool.
TEST_F(CTest, OnePlanServesManyThreads) {
  const Shape shape = {1024, 1024};
  Random random(seed_);
  OwnedTensor x(DataType::kFloat, shape);
  for (int64_t i = 0; i < x.elements; i += 7) x.Set(i, EncodeValue(x.type, random.Normal()));
  const quantd_parameters parameters =
      ParametersOf(QUANTD_DYNAMIC_QUANTIZE, x, DataType::kInt8, {});
  Answer first;
  const auto plan = MakePlan(parameters, first);
  ASSERT_EQ(first.code, QUANTD_OK) << first.message;
  RunPlan(plan.get(), false, 1, x, first);
  std::vector<Answer> answers(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < answers.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int run = 0; run < 5; ++run)
        RunPlan(plan.get(), false, static_cast<int>(i) % 3, x, answers[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Answer& answer : answers) {
    ASSERT_EQ(answer.code, QUANTD_OK) << answer.message;
    EXPECT_EQ(answer.y, first.y);
    EXPECT_EQ(answer.scale, first.scale);
  }
}

TEST_F(CTest, TheFlagEndsACallThatRuns) {
  const OwnedTensor x(DataType::kFloat, {64, 1 << 20});
  const quantd_parameters parameters =
      ParametersOf(QUANTD_DYNAMIC_QUANTIZE, x, DataType::kInt8, {});
  Answer answer;
  const auto plan = MakePlan(parameters, answer);
  std::vector<uint8_t> y(x.elements);
  float scale = 0;
  uint8_t zero_point = 0;
  std::atomic<int32_t> cancelled{0};
  quantd_call call = {};
  call.struct_size = sizeof(call);
  call.threads = 1;
  call.x = x.bytes.data();
  call.x_size = x.bytes.size();
  call.y = y.data();
  call.y_size = y.size();
  call.scale = &scale;
  call.scale_size = sizeof(scale);
  call.zero_point = &zero_point;
  call.zero_point_size = 1;
  static_assert(sizeof(cancelled) == sizeof(int32_t));
  call.cancelled = reinterpret_cast<const int32_t*>(&cancelled);
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    cancelled = 1;
  });
  // The flag is set during one of these calls or before it; that one must fail.
  int32_t code = QUANTD_OK;
  while (code == QUANTD_OK) code = quantd_plan_run(plan.get(), &call, nullptr);
  canceller.join();
  EXPECT_EQ(code, QUANTD_CANCELLED);
}

// A forked child has none of the threads that oneTBB believes it has. Neither ThreadSanitizer nor
// the emulator in which tests for arm64 run can handle that.
#if !defined(__SANITIZE_THREAD__) && !defined(__aarch64__)
TEST_F(CTest, AForkedChildGoesOn) {
  const OwnedTensor x(DataType::kFloat, {4, 1 << 20});
  const quantd_parameters parameters =
      ParametersOf(QUANTD_DYNAMIC_QUANTIZE, x, DataType::kInt8, {});
  Answer answer;
  const auto plan = MakePlan(parameters, answer);
  RunPlan(plan.get(), false, 0, x, answer);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    Answer again;
    RunPlan(plan.get(), false, 0, x, again);
    _exit(again.code == QUANTD_OK && again.y == answer.y ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace quantd
