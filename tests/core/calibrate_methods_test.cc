// Every method against the formulas of core/CALIBRATION.md, implemented again over sorted values
// and without a moving window.
#include <algorithm>
#include <map>

#include "calibrate_values.h"

namespace quantd {
namespace {

// The result for one channel.
struct Answer {
  float scale;
  int32_t zero_point;
  float low;
  float high;
};

class Plain {
 public:
  Plain(std::vector<float> values, const CalibrationOptions& options)
      : values_(std::move(values)), options_(options) {
    const DataTypeInfo& info = Info(options.output_type);
    integer_ = info.kind == DataTypeKind::kInteger;
    symmetric_ = options.symmetry == Symmetry::kSymmetric || !integer_;
    qmin_ = static_cast<double>(info.minimum);
    qmax_ = integer_ ? static_cast<double>(info.maximum) : info.largest;
    const bool balanced =
        options.output_type == DataType::kInt8 || options.output_type == DataType::kInt16;
    if (symmetric_ && balanced) qmin_ = -qmax_;
    std::sort(values_.begin(), values_.end());
    if (!values_.empty()) {
      low_ = values_.front() + 0.0f;
      high_ = values_.back() + 0.0f;
    }
    top_ = std::max(std::fabs(low_), std::fabs(high_));
    largest_ = BinOf(top_);
    floor_ = std::max(0, largest_ - 3072);
    for (float value : values_) {
      const int m = BinOf(value);
      ++counts_[m <= floor_ ? 0 : std::signbit(value) ? -m : m];
    }
  }

  Answer Result() const {
    double low = 0, high = 0;
    switch (options_.method) {
      case CalibrationMethod::kMinMax:
        std::tie(low, high) = Limited(top_);
        break;
      case CalibrationMethod::kPercentile:
        std::tie(low, high) = Percentile();
        break;
      case CalibrationMethod::kMse:
        std::tie(low, high) = Limited(Best(16, [this](int c) { return SquaredError(c); }));
        break;
      case CalibrationMethod::kEntropy:
        std::tie(low, high) = Limited(Best(4, [this](int c) { return Divergence(c); }));
        break;
    }
    Answer answer = ScaleOf(low, high);
    answer.low = static_cast<float>(low) + 0.0f;
    answer.high = static_cast<float>(high);
    return answer;
  }

 private:
  using Pair = std::pair<double, double>;

  static int BinOf(float value) {
    return static_cast<int>((std::bit_cast<uint32_t>(value) & 0x7FFFFFFF) >> 16);
  }
  static double Edge(int m) { return m == 0x7F80 ? std::ldexp(1.0, 128) : Floats(m); }
  static double Floats(int m) { return std::bit_cast<float>(static_cast<uint32_t>(m) << 16); }

  Pair Limited(double t) const {
    t = std::min<double>(t, top_);
    if (symmetric_) return {-t, t};
    return {std::clamp<double>(low_, -t, t), std::clamp<double>(high_, -t, t)};
  }

  Answer ScaleOf(double low, double high) const {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
    if (symmetric_) {
      const double larger = std::max(-low, high);
      low = -larger;
      high = larger;
    }
    const double scale = integer_ ? (high - low) / (qmax_ - qmin_) : high / qmax_;
    if (scale < std::ldexp(1.0, -126)) return {1, 0, 0, 0};
    if (!integer_) return {static_cast<float>(scale), 0, 0, 0};
    const double z = symmetric_ ? (qmin_ + qmax_) / 2 : qmin_ - low / scale;
    return {static_cast<float>(scale), static_cast<int32_t>(std::rint(z)), 0, 0};
  }

  Pair Percentile() const {
    if (values_.empty()) return {0, 0};
    const double p = options_.percentile == 0 ? 99.99 : options_.percentile;
    const auto n = static_cast<double>(values_.size());
    if (symmetric_) {
      std::vector<float> magnitudes;
      for (float value : values_) magnitudes.push_back(std::fabs(value));
      std::sort(magnitudes.rbegin(), magnitudes.rend());
      const auto drop = static_cast<size_t>(std::floor(n * (100 - p) / 100));
      const int bin = std::max(floor_, BinOf(magnitudes[drop]));
      return Limited(Edge(bin + 1));
    }
    const auto drop = static_cast<size_t>(std::floor(n * (100 - p) / 200));
    const float top = values_[values_.size() - 1 - drop];
    const float bottom = values_[drop];
    const auto upper = [this](float value) {
      const int m = BinOf(value);
      if (m <= floor_) return Edge(floor_ + 1);
      return value > 0 ? Edge(m + 1) : -Edge(m);
    };
    return {std::max<double>(-upper(-bottom), low_), std::min<double>(upper(top), high_)};
  }

  template <typename Loss>
  double Best(int octaves, Loss loss) const {
    std::vector<int> candidates;
    for (int c = largest_; c > floor_ && c > largest_ - 128 * octaves; c -= 8) {
      candidates.push_back(c);
    }
    if (candidates.empty()) return top_;
    const auto first_least = [&](const std::vector<int>& some) {
      std::vector<double> losses;
      for (int c : some) losses.push_back(loss(c));
      return some[static_cast<size_t>(std::min_element(losses.begin(), losses.end()) -
                                      losses.begin())];
    };
    const int around = first_least(candidates);
    candidates.clear();
    for (int c = std::min(largest_, around + 7); c >= around - 7; --c) {
      if (c > floor_) candidates.push_back(c);
    }
    return Edge(first_least(candidates) + 1);
  }

  double SquaredError(int c) const {
    const auto [low, high] = Limited(Edge(c + 1));
    const Answer found = ScaleOf(low, high);
    const double s = found.scale, z = found.zero_point;
    const auto integral = [&](double u) {
      const double nearest = std::clamp(std::rint(u), qmin_ - z, qmax_ - z);
      const double r = u - nearest;
      return nearest / 12 + r * r * r / 3;
    };
    double sum = 0;
    for (const auto& [id, count] : counts_) {
      if (id == 0) continue;
      const double a = (id > 0 ? Edge(id) : -Edge(-id + 1)) / s;
      const double b = (id > 0 ? Edge(id + 1) : -Edge(-id)) / s;
      sum += static_cast<double>(count) * ((integral(b) - integral(a)) / (b - a)) * (s * s);
    }
    return sum;
  }

  static double Ln(double x) {
    int k = 0;
    double f = std::frexp(x, &k);
    if (f < 0.70710678118654752) {
      f = f * 2;
      k = k - 1;
    }
    const double u = (f - 1) / (f + 1), v = u * u;
    double p = 1.0 / 23;
    for (int i = 21; i > 0; i -= 2) p = p * v + 1.0 / i;
    return k * 0.6931471805599453 + 2 * (u * p);
  }

  double Divergence(int c) const {
    std::map<int, double> magnitudes;
    double total = 0;
    for (const auto& [id, count] : counts_) {
      if (id == 0) continue;
      magnitudes[std::abs(id)] += static_cast<double>(count);
      total += static_cast<double>(count);
    }
    const double levels = std::ldexp(1.0, Info(options_.output_type).bits - 1);
    struct Group {
      double count = 0, width = 0;
    };
    std::map<double, Group> groups;
    double above = 0;
    int last = -1;
    const auto group = [&](int m) -> Group& {
      const double middle = Edge(m) + (Edge(m + 1) - Edge(m)) / 2;
      return groups[std::min(levels - 1, std::floor(middle * levels / Edge(c + 1)))];
    };
    for (const auto& [m, count] : magnitudes) {
      if (m > c) {
        above += count;
        continue;
      }
      group(m).count += count;
      group(m).width += Edge(m + 1) - Edge(m);
      last = m;
    }
    if (last < 0) return kInfinity;
    double loss = 0;
    for (const auto& [m, count] : magnitudes) {
      if (m > c) break;
      const double p = (m == last ? count + above : count) / total;
      const double q =
          ((group(m).count / group(m).width) * (Edge(m + 1) - Edge(m))) / (total - above);
      loss += p * Ln(p / q);
    }
    return loss;
  }

  std::vector<float> values_;
  CalibrationOptions options_;
  bool integer_, symmetric_;
  double qmin_, qmax_;
  float low_ = 0, high_ = 0, top_ = 0;
  int largest_ = 0, floor_ = 0;
  std::map<int, uint64_t> counts_;
};

constexpr DataType kTypes[] = {
    DataType::kUint8,          DataType::kInt8,           DataType::kUint16,
    DataType::kInt16,          DataType::kUint4,          DataType::kInt4,
    DataType::kUint2,          DataType::kInt2,           DataType::kFloat8E4M3Fn,
    DataType::kFloat8E5M2,     DataType::kFloat8E4M3Fnuz, DataType::kFloat4E2M1,
    DataType::kFloat8E5M2Fnuz, DataType::kFloat6E2M3,     DataType::kFloat6E3M2};

CalibrationOptions SomeOptions(std::mt19937& random) {
  CalibrationOptions options;
  options.output_type = kTypes[random() % std::size(kTypes)];
  const bool integer = Info(options.output_type).kind == DataTypeKind::kInteger;
  constexpr CalibrationMethod kMethods[] = {CalibrationMethod::kMinMax,
                                            CalibrationMethod::kPercentile, CalibrationMethod::kMse,
                                            CalibrationMethod::kEntropy};
  options.method = kMethods[random() % (integer ? 4 : 2)];
  if (random() % 2 == 0) options.symmetry = Symmetry::kSymmetric;
  if (options.method == CalibrationMethod::kPercentile && random() % 4 != 0) {
    constexpr double kPercentiles[] = {50.0001, 75, 90, 99, 99.9, 99.99, 99.9999, 100};
    options.percentile = kPercentiles[random() % std::size(kPercentiles)];
  }
  return options;
}

void ExpectSame(const Calibration& got, size_t channel, const Answer& want) {
  const size_t channels = got.scale.size();
  ASSERT_EQ(got.scale[channel], want.scale);
  if (got.has_zero_point) {
    ASSERT_EQ(got.zero_point[channel], want.zero_point);
  }
  ASSERT_EQ(std::bit_cast<uint32_t>(got.range[channel]), std::bit_cast<uint32_t>(want.low));
  ASSERT_EQ(std::bit_cast<uint32_t>(got.range[channels + channel]),
            std::bit_cast<uint32_t>(want.high));
}

TEST(CalibrateMethods, AreTheFormulas) {
  std::mt19937 random = SeededRandom(1);
  const Executor executor(2);
  for (int round = 0; round < 600; ++round) {
    const CalibrationOptions options = SomeOptions(random);
    const std::vector<float> values = SomeValues(random, random() % (round % 3 == 0 ? 4000 : 60));
    SCOPED_TRACE(testing::Message()
                 << "round " << round << " size " << values.size() << " type "
                 << Name(options.output_type) << " method " << static_cast<int>(options.method));
    Calibrator calibrator = MakeCalibrator(options);
    ASSERT_TRUE(calibrator.Add(View(values), executor, Never).ok());
    const absl::StatusOr<Calibration> result = calibrator.Result(executor, Never);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->elements, values.size());
    ASSERT_TRUE(result->shape.empty());
    ASSERT_NO_FATAL_FAILURE(ExpectSame(*result, 0, Plain(values, options).Result()));
  }
}

// However values are cut, in which order and by which worker they are counted, and by any method.
TEST(CalibrateMethods, DependOnTheValuesAlone) {
  std::mt19937 random = SeededRandom(2);
  for (int round = 0; round < 1000; ++round) {
    CalibrationOptions options = SomeOptions(random);
    options.non_finite = NonFinite::kIgnore;
    const size_t channels = round % 3 == 0 ? 5 : 1;
    if (channels > 1) options.axis = -1;
    std::vector<float> values = SomeValues(random, 1 + random() % 3000);
    for (size_t more = random() % 3; more > 0; --more) {
      for (float value : SomeValues(random, random() % 500)) values.push_back(value);
    }
    if (random() % 4 == 0) values[random() % values.size()] = NAN;
    const size_t rows = (values.size() + channels - 1) / channels;
    values.resize(rows * channels);
    const auto view = [channels](const std::vector<float>& some) {
      if (channels == 1) return View(some);
      return View(some,
                  {static_cast<int64_t>(some.size() / channels), static_cast<int64_t>(channels)});
    };
    const Executor alone(1);
    Calibrator whole = MakeCalibrator(options);
    ASSERT_TRUE(whole.Add(view(values), alone, Never).ok());

    const auto row = [&](size_t i) {
      return values.begin() + static_cast<ptrdiff_t>(i * channels);
    };
    for (size_t i = 1; i < rows; ++i) {
      std::swap_ranges(row(i), row(i + 1), row(random() % i));
    }
    const Executor several(1 + static_cast<int>(random() % 4));
    CalibrationOptions counting = options;  // a state with bins serves every method that needs bins
    counting.percentile = 0;
    if (options.method != CalibrationMethod::kMinMax) {
      counting.method = CalibrationMethod::kPercentile;
    }
    std::vector<Calibrator> workers;
    for (size_t at = 0; at < rows;) {
      const size_t end = std::min(rows, at + 1 + random() % 1500);
      const std::vector<float> some(row(at), row(end));
      at = end;
      if (workers.empty() || random() % 2 == 0) workers.push_back(MakeCalibrator(counting));
      ASSERT_TRUE(workers[random() % workers.size()].Add(view(some), several, Never).ok());
    }
    // A worker without values has no state.
    std::erase_if(workers,
                  [&](const Calibrator& worker) { return !worker.Result(alone, Never).ok(); });
    workers.push_back(MakeCalibrator(options));
    // Merges them at random until one is left.
    while (workers.size() > 1) {
      const size_t from = random() % (workers.size() - 1);
      Calibrator taken = std::move(workers[from]);
      workers.erase(workers.begin() + static_cast<ptrdiff_t>(from));
      ASSERT_TRUE(workers[random() % workers.size()].Merge(AsBytes(taken.State())).ok());
    }
    ASSERT_EQ(workers[0].State(), whole.State()) << "round " << round;
    const Calibration a = *whole.Result(alone, Never);
    const Calibration b = *workers[0].Result(several, Never);
    ASSERT_EQ(a.scale, b.scale);
    ASSERT_EQ(a.zero_point, b.zero_point);
    ASSERT_EQ(a.range, b.range);
    ASSERT_EQ(a.elements, b.elements);
    ASSERT_EQ(a.non_finite_elements, b.non_finite_elements);
  }
}

// Every position of the axis, type of x, size (one task and several), and number of threads.
TEST(CalibrateMethods, ChannelsAreTheirValuesAlone) {
  std::mt19937 random = SeededRandom(3);
  constexpr DataType kInputs[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                                  DataType::kInt32};
  for (int round = 0; round < 200; ++round) {
    CalibrationOptions options = SomeOptions(random);
    options.non_finite = NonFinite::kIgnore;
    const bool large = round % 20 == 0;
    const int64_t outer = 1 + static_cast<int64_t>(random() % (large ? 200 : 6));
    const int64_t channels = 1 + static_cast<int64_t>(random() % (large ? 700 : 9));
    const int64_t inner = random() % 2 == 0 ? 1 : 1 + static_cast<int64_t>(random() % 9);
    const DataType type = kInputs[random() % 4];
    const int bytes = Info(type).bits / 8;
    const int64_t elements = outer * channels * inner;
    std::vector<uint8_t> packed(static_cast<size_t>(elements * bytes));
    std::vector<std::vector<float>> of_channel(static_cast<size_t>(channels));
    std::vector<uint64_t> others(static_cast<size_t>(channels));
    uint64_t finite = 0;
    for (int64_t i = 0; i < elements; ++i) {
      uint32_t code = static_cast<uint32_t>(random());
      if (type == DataType::kFloat && random() % 8 != 0) {
        code = std::bit_cast<uint32_t>(std::normal_distribution<float>()(random));
      }
      StoreCode(type, packed.data(), i, bytes == 2 ? code & 0xFFFF : code);
      const float value = DecodeFloat(type, LoadCode(type, packed.data(), i));
      const auto channel = static_cast<size_t>(i / inner % channels);
      if (std::isfinite(value)) {
        of_channel[channel].push_back(value);
        ++finite;
      } else {
        ++others[channel];
      }
    }
    const Misaligned given(packed, random() % 8);
    const TensorView x{type, {outer, channels, inner}, given.bytes()};
    options.axis = random() % 2 == 0 ? 1 : -2;
    SCOPED_TRACE(testing::Message() << "round " << round << " shape " << ShapeString(x.shape)
                                    << " type " << Name(type));
    const Executor executor(1 + static_cast<int>(random() % 12));
    Calibrator calibrator = MakeCalibrator(options);
    ASSERT_TRUE(calibrator.Add(x, executor, Never).ok());
    const Calibration result = *calibrator.Result(executor, Never);
    ASSERT_EQ(result.shape, Shape({channels}));
    ASSERT_EQ(result.range_shape, Shape({2, channels}));
    ASSERT_EQ(result.elements, finite);
    ASSERT_EQ(result.non_finite_elements, static_cast<uint64_t>(elements) - finite);
    for (size_t i = 0; i < of_channel.size(); ++i) {
      // Checking hundreds of channels would repeat the same searches; a few are enough.
      if (large && i % 50 != 0) continue;
      ASSERT_NO_FATAL_FAILURE(ExpectSame(result, i, Plain(of_channel[i], options).Result()))
          << "channel " << i;
    }
  }
}

}  // namespace
}  // namespace quantd
