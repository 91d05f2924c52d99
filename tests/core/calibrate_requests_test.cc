// Requests that calibration refuses, and that refusing changes nothing.
#include <atomic>

#include "absl/strings/str_cat.h"
#include "calibrate_values.h"

namespace quantd {
namespace {

std::string FieldOf(const CalibrationOptions& options) {
  return ErrorField(Calibrator::Create(options).status());
}

TEST(CalibrateRequests, Options) {
  EXPECT_EQ(FieldOf({.output_type = DataType::kFloat}), "output_type");
  EXPECT_EQ(FieldOf({.output_type = DataType::kInt32}), "output_type");
  EXPECT_EQ(FieldOf({.output_type = DataType::kFloat8E8M0}), "output_type");
  for (const DataType type : {DataType::kFloat8E4M3Fn, DataType::kFloat4E2M1}) {
    EXPECT_EQ(FieldOf({.method = CalibrationMethod::kMse, .output_type = type}), "method");
    EXPECT_EQ(FieldOf({.method = CalibrationMethod::kEntropy, .output_type = type}), "method");
    EXPECT_EQ(FieldOf({.output_type = type, .symmetry = Symmetry::kAsymmetric}), "symmetry");
    EXPECT_EQ(FieldOf({.output_type = type}), "");
  }
  EXPECT_EQ(FieldOf({.percentile = 99}), "percentile");
  for (const double wrong : {50.0, 100.0001, -1.0, double{NAN}, double{INFINITY}}) {
    EXPECT_EQ(FieldOf({.method = CalibrationMethod::kPercentile, .percentile = wrong}),
              "percentile");
  }
  EXPECT_EQ(FieldOf({.method = CalibrationMethod::kPercentile, .percentile = 100}), "");
}

TEST(CalibrateRequests, Tensors) {
  const Executor executor(1);
  const std::vector<float> values(6, 1.0f);
  Calibrator calibrator = MakeCalibrator({.axis = 1});
  EXPECT_EQ(ErrorField(calibrator.Add(View(values), executor, Never)), "axis");
  EXPECT_EQ(ErrorField(calibrator.Add(View(values, {}), executor, Never)), "x");  // bytes
  EXPECT_EQ(ErrorField(calibrator.Add(View(values, {2, 4}), executor, Never)), "x");
  EXPECT_EQ(ErrorField(calibrator.Add(View(values, {0, int64_t{1} << 50}), executor, Never)), "x");
  EXPECT_EQ(ErrorField(calibrator.Add(View(values, {0, 65537}), executor, Never)), "x");
  EXPECT_TRUE(calibrator.BytesWith(View({}, {0, 65536})).ok());
  TensorView bytes = View(values, {2, 12});
  bytes.data_type = DataType::kUint8;
  EXPECT_EQ(ErrorField(calibrator.Add(bytes, executor, Never)), "x");
  EXPECT_EQ(ErrorField(calibrator.Result(executor, Never).status()), "x");
  EXPECT_TRUE(calibrator.Add(View(values, {2, 3}), executor, Never).ok());
  EXPECT_EQ(ErrorField(calibrator.Add(View(values, {3, 2}), executor, Never)), "x");
  EXPECT_TRUE(calibrator.Add(View(values, {1, 3, 2}), executor, Never).ok());
  EXPECT_EQ(calibrator.Result(executor, Never)->elements, 12u);
}

TEST(CalibrateRequests, WithoutValues) {
  const Executor executor(1);
  Calibrator calibrator = MakeCalibrator(
      {.method = CalibrationMethod::kMse, .axis = 1, .non_finite = NonFinite::kIgnore});
  ASSERT_TRUE(calibrator.Add(View({}, {0, 3}), executor, Never).ok());
  ASSERT_TRUE(calibrator.Add(View({NAN, 1, INFINITY}, {1, 3}), executor, Never).ok());
  const Calibration result = *calibrator.Result(executor, Never);
  EXPECT_EQ(result.elements, 1u);
  EXPECT_EQ(result.non_finite_elements, 2u);
  EXPECT_EQ(result.scale[0], 1);
  EXPECT_EQ(result.zero_point[0], 0);
  EXPECT_EQ(result.range, std::vector<float>({0, 1, 0, 0, 1, 0}));
}

TEST(CalibrateRequests, TheFirstThatIsNotFiniteIsNamedAndNothingChanged) {
  std::mt19937 random = SeededRandom(5);
  for (int round = 0; round < 60; ++round) {
    const Executor executor(1 + static_cast<int>(random() % 6));
    CalibrationOptions options{.method = CalibrationMethod::kPercentile};
    const auto channels = static_cast<int64_t>(1 + random() % 300);
    if (random() % 2 == 0) options.axis = -1;
    const size_t size = static_cast<size_t>(channels) * (round % 2 == 0 ? 3 : 1000);
    std::vector<float> values(size, 1.0f);
    const Shape shape{static_cast<int64_t>(size) / channels, channels};
    Calibrator calibrator = MakeCalibrator(options);
    ASSERT_TRUE(calibrator.Add(View(values, shape), executor, Never).ok());
    const std::string before = calibrator.State();
    size_t first = size;
    for (int i = 0; i < 3; ++i) {
      const size_t at = random() % size;
      values[at] = i == 0 ? NAN : -INFINITY;
      first = std::min(first, at);
    }
    const absl::Status status = calibrator.Add(View(values, shape), executor, Never);
    ASSERT_EQ(ErrorField(status), "x");
    ASSERT_NE(status.message().find(absl::StrCat("x[", first, "] is ")), std::string::npos)
        << status;
    ASSERT_EQ(calibrator.State(), before);
  }
}

TEST(CalibrateRequests, Stop) {
  std::atomic<bool> stop = false;
  const auto stopped = [&] { return stop.load(); };
  const Executor executor(2);
  std::mt19937 random = SeededRandom(6);
  const std::vector<float> values = SomeValues(random, 1 << 20);
  Calibrator calibrator = MakeCalibrator({.method = CalibrationMethod::kMse, .axis = 1});
  ASSERT_TRUE(calibrator.Add(View(values, {1 << 14, 64}), executor, stopped).ok());
  stop = true;
  EXPECT_EQ(calibrator.Result(executor, stopped).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(calibrator.Add(View(values, {1 << 14, 64}), executor, stopped).code(),
            absl::StatusCode::kCancelled);
}

TEST(CalibrateRequests, MemoryIsWhatWasSaid) {
  const std::vector<float> values(6, 1.0f);
  const Calibrator ranges = MakeCalibrator({.axis = 1});
  const Calibrator bins = MakeCalibrator({.method = CalibrationMethod::kMse, .axis = 1});
  EXPECT_LE(*ranges.BytesWith(View(values, {2, 3})), 3 * 64u);
  EXPECT_GE(*bins.BytesWith(View(values, {2, 3})), 3 * 49160u);
  EXPECT_LE(*bins.BytesWith(View(values, {2, 3})), 3 * 50000u);
}

}  // namespace
}  // namespace quantd
