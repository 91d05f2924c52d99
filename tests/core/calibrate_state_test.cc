// States: those that State makes are accepted, and no others.
#include "calibrate_values.h"
#include "rules/bins.h"

namespace quantd {
namespace {

std::string SomeState(std::mt19937& random, CalibrationOptions& options) {
  options.method = random() % 3 == 0 ? CalibrationMethod::kMinMax : CalibrationMethod::kPercentile;
  options.non_finite = NonFinite::kIgnore;
  Calibrator calibrator = MakeCalibrator(options);
  const Executor executor(1);
  for (int i = 0; i < 3; ++i) {
    std::vector<float> values = SomeValues(random, 40);
    if (random() % 4 == 0) values[0] = NAN;
    const Shape shape = options.axis.has_value() ? Shape{8, 5} : Shape{40};
    EXPECT_TRUE(calibrator.Add(View(values, shape), executor, Never).ok());
  }
  return calibrator.State();
}

TEST(CalibrateState, OfNothingButZeros) {
  Calibrator calibrator = MakeCalibrator({.method = CalibrationMethod::kMse});
  ASSERT_TRUE(calibrator.Add(View({0.0f, -0.0f, 0.0f}), Executor(1), Never).ok());
  // Three values from 0 to 0, in one bin whose id is 0.
  EXPECT_EQ(calibrator.State(), std::string("QDC1\x01\x01\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"
                                            "\x01\x80\xFF\x01\x03",
                                            21));
}

// Large tensors are counted by the upper halves of their values, small ones by their bins.
TEST(CalibrateState, LargeTensorsAreCountedLikeSmallOnes) {
  std::mt19937 random = SeededRandom(6);
  for (int round = 0; round < 8; ++round) {
    const CalibrationOptions options = {.method = CalibrationMethod::kPercentile,
                                        .non_finite = NonFinite::kIgnore};
    std::vector<float> values = SomeValues(random, (1 << 18) + random() % 3000);
    if (round % 2 == 0) {
      for (size_t i = 0; i < 100; ++i)
        values[random() % values.size()] = i % 2 == 0 ? NAN : INFINITY;
    }
    Calibrator small = MakeCalibrator(options);
    for (size_t at = 0; at < values.size(); at += 50000) {
      const auto end =
          values.begin() + static_cast<std::ptrdiff_t>(std::min(at + 50000, values.size()));
      const std::vector<float> some(values.begin() + static_cast<std::ptrdiff_t>(at), end);
      ASSERT_TRUE(small.Add(View(some), Executor(1), Never).ok());
    }
    for (const int threads : {1, 2}) {
      Calibrator large = MakeCalibrator(options);
      ASSERT_TRUE(large.Add(View(values), Executor(threads), Never).ok());
      ASSERT_EQ(large.State(), small.State()) << "round " << round << ", threads " << threads;
    }
    Calibrator rejects = MakeCalibrator({.method = CalibrationMethod::kPercentile});
    const absl::Status status = rejects.Add(View(values), Executor(1), Never);
    ASSERT_EQ(status.ok(), round % 2 == 1) << status;
  }
}

TEST(CalibrateState, OneThatChangedIsRefusedOrMeansWhatItSays) {
  std::mt19937 random = SeededRandom(4);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    CalibrationOptions options;
    if (random() % 2 == 0) options.axis = -1;
    static std::string state;
    if (round % 50 == 0 || state.empty()) state = SomeState(random, options);
    options.axis = (state[4] & 2) != 0 ? std::optional<int64_t>(-1) : std::nullopt;
    options.method =
        (state[4] & 1) != 0 ? CalibrationMethod::kPercentile : CalibrationMethod::kMinMax;
    std::string changed = state;
    switch (random() % 4) {
      case 0:
        changed.resize(random() % changed.size());
        break;
      case 1:
        changed.insert(random() % (changed.size() + 1), 1, static_cast<char>(random()));
        break;
      default:
        for (size_t i = 0; i <= random() % 3; ++i) {
          changed[random() % changed.size()] ^= static_cast<char>(1 << random() % 8);
        }
    }
    Calibrator calibrator = MakeCalibrator(options);
    const absl::Status status = calibrator.Merge(AsBytes(changed));
    if (!status.ok()) {
      ++refused;
      ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      ASSERT_EQ(ErrorField(status), "state");
    } else {
      ASSERT_EQ(calibrator.State(), changed);
    }
  }
  EXPECT_GT(refused, 10000);
  EXPECT_LT(refused, 20000);  // some are other valid states
}

TEST(CalibrateState, ClaimsTakeNoMemory) {
  // 2^56 channels, or bins, in a few bytes.
  const std::string many("QDC1\x03\x80\x80\x80\x80\x80\x80\x80\x80\x01", 14);
  Calibrator calibrator = MakeCalibrator({.method = CalibrationMethod::kPercentile, .axis = 0});
  EXPECT_EQ(ErrorField(calibrator.BytesWithState(AsBytes(many)).status()), "state");
  EXPECT_EQ(ErrorField(calibrator.Merge(AsBytes(many))), "state");
}

TEST(CalibrateState, OtherChannelsAndMethods) {
  const Executor executor(1);
  const std::vector<float> values(6, 1.0f);
  const auto state_of = [&](const CalibrationOptions& options, Shape shape) {
    Calibrator calibrator = MakeCalibrator(options);
    EXPECT_TRUE(calibrator.Add(View(values, std::move(shape)), executor, Never).ok());
    return calibrator.State();
  };
  const std::string plain = state_of({}, {6});
  const std::string binned = state_of({.method = CalibrationMethod::kMse}, {6});
  const std::string two = state_of({.axis = 0}, {2, 3});
  const std::string three = state_of({.axis = 0}, {3, 2});

  Calibrator calibrator = MakeCalibrator({.method = CalibrationMethod::kMse});
  EXPECT_EQ(ErrorField(calibrator.Merge(AsBytes(plain))), "state");
  EXPECT_EQ(ErrorField(calibrator.Merge(AsBytes(two))), "state");
  EXPECT_TRUE(calibrator.Merge(AsBytes(binned)).ok());

  // Bins that the method does not need are left out.
  Calibrator ranges = MakeCalibrator({});
  EXPECT_TRUE(ranges.Merge(AsBytes(binned)).ok());
  EXPECT_EQ(ranges.State(), plain);

  Calibrator channels = MakeCalibrator({.axis = -2});
  EXPECT_TRUE(channels.Merge(AsBytes(two)).ok());
  EXPECT_EQ(ErrorField(channels.Merge(AsBytes(three))), "state");
  EXPECT_EQ(ErrorField(channels.Merge(AsBytes(plain))), "state");
  EXPECT_EQ(ErrorField(channels.Add(View(values, {3, 2}), executor, Never)), "x");
  EXPECT_TRUE(channels.Add(View(values, {2, 3}), executor, Never).ok());
}

TEST(CalibrateState, SumsOverChannelsDoNotOverflow) {
  std::string many("QDC1\x02\x05", 6);
  for (int channel = 0; channel < 5; ++channel) {
    many += std::string("\x80\x80\x80\x80\x80\x80\x80\x80\x40", 9);  // 2^62 finite
    many += std::string("\x80\x80\x80\x80\x80\x80\x80\x80\x40", 9);  // and as many non-finite
    many += std::string("\x00\x00\x80\x3F\x00\x00\x80\x3F", 8);
  }
  Calibrator calibrator = MakeCalibrator({.axis = 0});
  ASSERT_TRUE(calibrator.Merge(AsBytes(many)).ok());
  const absl::StatusOr<Calibration> result = calibrator.Result(Executor(1), Never);
  EXPECT_EQ(result->elements, UINT64_MAX);
  EXPECT_EQ(result->non_finite_elements, UINT64_MAX);
}

// Finite values and others, whatever the order.
TEST(CalibrateState, CountsUpToTheirLimit) {
  const std::string most("\x80\x80\x80\x80\x80\x80\x80\x80\x40", 9);  // 2^62
  const std::string one_more("\x81\x80\x80\x80\x80\x80\x80\x80\x40", 9);
  const std::string head("QDC1\x00\x01", 6);
  const std::string finite = head + most + std::string("\x00\x00\x00\x80\x3F\x00\x00\x80\x3F", 9);
  const std::string others = head + std::string(1, '\0') + most;
  Calibrator calibrator = MakeCalibrator({});
  ASSERT_TRUE(calibrator.Add(View(std::vector<float>()), Executor(1), Never).ok());
  EXPECT_TRUE(calibrator.Merge(AsBytes(finite)).ok());
  EXPECT_TRUE(calibrator.Merge(AsBytes(others)).ok());
  const std::string both = calibrator.State();
  EXPECT_EQ(ErrorField(calibrator.Merge(AsBytes(others))), "state");
  EXPECT_EQ(ErrorField(calibrator.Merge(AsBytes(finite))), "state");
  EXPECT_EQ(calibrator.State(), both);
  EXPECT_EQ(calibrator.Result(Executor(1), Never)->elements, uint64_t{1} << 62);
  EXPECT_EQ(calibrator.Result(Executor(1), Never)->non_finite_elements, uint64_t{1} << 62);

  Calibrator another = MakeCalibrator({});
  EXPECT_EQ(ErrorField(another.Merge(AsBytes(head + std::string(1, '\0') + one_more))), "state");
  EXPECT_EQ(ErrorField(another.Merge(
                AsBytes(head + one_more + std::string("\x00\x00\x00\x80\x3F\x00\x00\x80\x3F", 9)))),
            "state");
}

// Every bin that a channel can have.
TEST(CalibrateState, EveryBin) {
  std::vector<float> values = {0};
  const int top = rules::Magnitude(3e38f);
  for (int m = rules::Floor(top) + 1; m <= top; ++m) {
    values.push_back(static_cast<float>(rules::Edge(m)));
    values.push_back(-values.back());
  }
  ASSERT_EQ(values.size(), rules::kSlots);
  const CalibrationOptions options = {.method = CalibrationMethod::kEntropy};
  Calibrator calibrator = MakeCalibrator(options);
  EXPECT_EQ(calibrator.channels(), 0u);
  ASSERT_TRUE(calibrator.Add(View(values), Executor(1), Never).ok());
  EXPECT_EQ(calibrator.channels(), 1u);
  const std::string state = calibrator.State();
  EXPECT_EQ(state.size(), calibrator.StateBytes());
  Calibrator another = MakeCalibrator(options);
  EXPECT_TRUE(another.Merge(AsBytes(state)).ok());
  EXPECT_EQ(another.State(), state);
  EXPECT_EQ(another.channels(), 1u);
}

}  // namespace
}  // namespace quantd
