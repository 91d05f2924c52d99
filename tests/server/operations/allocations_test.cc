// What planning, executing and encoding allocate, against the bounds that are known before.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "counted_memory.h"
#include "quantd/calibration.h"
#include "quantd/executor.h"
#include "random_parameters.h"
#include "server/memory/buffer.h"
#include "server/operations/memory.h"
#include "server/operations/operation.h"
#include "server/wire/encode.h"
#include "wire_testing.h"

namespace quantd::operations {
namespace {

using wire::kMethods;
using wire::kOperations;
using wire::Random;

// The text of an error, and the objects that own what is large.
constexpr uint64_t kFixed = 4096;

struct Served {
  bool answered = false;
  uint64_t peak_bytes = 0;  // of operator new, and of the response
};

Served Serve(const wire::Request& request, const Executor& executor) {
  Served served;
  memory::Pool pool;
  uint64_t pieces = 0;
  const wire::MemoryUsed used = wire::Measure([&] {
    const absl::StatusOr<Operation> operation = Plan(request);
    if (!operation.ok()) return;
    wire::Response response(operation->response_layout(), pool);
    const wire::ResponseContents& contents = response.contents();
    pieces = contents.y.size() + contents.y_scale.size() + contents.y_zero_point.size();
    if (!operation->Execute(executor, [] { return false; }, response.contents()).ok()) return;
    const memory::Piece piece = std::move(response).FinishItem(~uint64_t{0});
    // As values, the packed bytes exist beside the encoded ones; else they are a part of the
    // response.
    if (request.output_encoding == wire::Encoding::kRaw) pieces = 0;
    pieces += piece.size;
    served.answered = true;
  });
  served.peak_bytes = used.peak_bytes + pieces;
  return served;
}

TEST(AllocationsTest, IsNeverLessThanWhatIsTaken) {
  const uint64_t seed = wire::TestSeed(20261126);
  const Executor executor(1);
  for (size_t i = 0; i < kOperations; ++i) {
    int answered = 0;
    constexpr int kRequests = 3'000;
    for (int j = 0; j < kRequests; ++j) {
      Random random(seed + j);
      const wire::Request request = RandomParameters(kMethods[i].method, random);
      if (j == 0) Serve(request, executor);  // allocates what all later ones share
      const Served served = Serve(request, executor);
      answered += served.answered ? 1 : 0;
      ASSERT_LE(served.peak_bytes, MemoryBound(request) + kFixed)
          << "QUANTD_TEST_SEED=" << seed + j << ", " << Name(kMethods[i].method);
    }
    EXPECT_GT(answered, kRequests / 10) << Name(kMethods[i].method);
  }
}

TEST(AllocationsTest, TakesNextToNoMemoryItself) {
  const uint64_t seed = wire::TestSeed(20261127);
  for (size_t i = 0; i < kOperations; ++i) {
    for (int j = 0; j < 3'000; ++j) {
      Random random(seed + j);
      const wire::Request request = RandomParameters(kMethods[i].method, random);
      const wire::MemoryUsed used = wire::Measure([&] { MemoryBound(request); });
      ASSERT_LE(used.peak_bytes, 1024U) << "QUANTD_TEST_SEED=" << seed + j;
    }
  }
}

// What a calibrator announces that it keeps, and what it takes besides.
TEST(AllocationsTest, OfCalibrationsTheyAreWhatWasSaid) {
  const uint64_t seed = wire::TestSeed(20261128);
  for (int i = 0; i < 400; ++i) {
    Random random(seed + i);
    const Executor executor(1 + static_cast<int>(random() % 3));
    CalibrationOptions options;
    options.axis = 1;
    options.method = random() % 2 == 0 ? CalibrationMethod::kMinMax : CalibrationMethod::kMse;
    const auto channels = static_cast<int64_t>(1 + random() % (i % 2 == 0 ? 40 : 6'000));
    const auto rows = static_cast<int64_t>(1 + random() % 40);
    const std::vector<float> values(static_cast<size_t>(rows * channels), 0.5F);
    TensorView x;
    x.data_type = DataType::kFloat;
    x.shape = {rows, channels};
    x.bytes = {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)};
    Calibrator calibrator = *Calibrator::Create(options);
    const uint64_t keeps = *calibrator.BytesWith(x);
    const uint64_t scratch = Calibrator::AddScratchBytes(values.size(), executor.threads());
    const wire::MemoryUsed used =
        wire::Measure([&] { EXPECT_TRUE(calibrator.Add(x, executor, [] { return false; }).ok()); });
    ASSERT_LE(used.peak_bytes, keeps + scratch + kFixed)
        << "QUANTD_TEST_SEED=" << seed + i << ", x [" << rows << ", " << channels << "], method "
        << static_cast<int>(options.method) << ", threads " << executor.threads();
  }
}

}  // namespace
}  // namespace quantd::operations
