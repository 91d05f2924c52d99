// What the tests of calibration share: difficult values, tensors of them, results.
#ifndef QUANTD_TESTS_CORE_CALIBRATE_VALUES_H_
#define QUANTD_TESTS_CORE_CALIBRATE_VALUES_H_

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels_test_util.h"
#include "quantd/calibration.h"
#include "tensors.h"

namespace quantd {

inline bool Never() { return false; }

inline TensorView View(const std::vector<float>& values, Shape shape) {
  return {DataType::kFloat,
          std::move(shape),
          {reinterpret_cast<const uint8_t*>(values.data()), values.size() * 4}};
}
inline TensorView View(const std::vector<float>& values) {
  return View(values, {static_cast<int64_t>(values.size())});
}

inline Calibrator MakeCalibrator(const CalibrationOptions& options) {
  absl::StatusOr<Calibrator> calibrator = Calibrator::Create(options);
  EXPECT_TRUE(calibrator.ok()) << calibrator.status();
  return *std::move(calibrator);
}

inline absl::Span<const uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Finite values of one of the kinds that calibration meets.
inline std::vector<float> SomeValues(std::mt19937& random, size_t size) {
  std::vector<float> values(size);
  const int kind = static_cast<int>(random() % 7);
  std::normal_distribution<float> normal;
  const float scale = std::exp(normal(random) * 10);
  for (float& value : values) {
    switch (kind) {
      case 0:
        value = normal(random);
        break;
      case 1:  // after a ReLU
        value = std::max(0.0f, normal(random)) * scale;
        break;
      case 2:  // with outliers
        value = normal(random) * (random() % 50 == 0 ? 1000.0f : 1.0f);
        break;
      case 3:  // far from 0
        value = scale * (5 + normal(random) * 0.01f);
        break;
      case 4:  // any finite bits: denormals, huge ones
        do {
          value = std::bit_cast<float>(static_cast<uint32_t>(random()));
        } while (!std::isfinite(value));
        break;
      case 5:  // edges of bins, and zeros of both signs
        value = std::bit_cast<float>(
            static_cast<uint32_t>(random() % 0x7F80 << 16 | random() % 2 << 31));
        if (random() % 3 == 0) value = random() % 2 == 0 ? 0.0f : -0.0f;
        break;
      default:  // below the normal numbers
        value =
            std::bit_cast<float>(static_cast<uint32_t>(random() % 0x00900000 | random() % 2 << 31));
    }
  }
  return values;
}

}  // namespace quantd

#endif  // QUANTD_TESTS_CORE_CALIBRATE_VALUES_H_
