// Given scales: the parts make up the whole tensor, in its order, and each element finds its scale.
#include <gtest/gtest.h>

#include <mutex>
#include <random>
#include <vector>

#include "linear/given_scales.h"
#include "linear/windows.h"
#include "random_layout.h"
#include "tensors.h"
#include "walk/block_walk.h"

namespace quantd {
namespace {

TEST(GivenScales, EveryElementFindsItsScaleInOnePart) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const Executor executor(3);
  int cut = 0;
  int crossing = 0;
  for (int round = 0; round < 600; ++round) {
    const RandomLayout made = MakeLayout(random);
    const BlockLayout& layout = made.layout;
    // Scale k and zero point k have the value k.
    std::vector<int64_t> numbers(static_cast<size_t>(layout.scale_count));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
    const Tensor integers = Integers(DataType::kInt32, {layout.scale_count}, numbers);
    const Tensor floats =
        Floats({layout.scale_count}, std::vector<float>(numbers.begin(), numbers.end()));
    const ScaleOperand scales{DataType::kFloat, floats.bytes()};
    const ScaleOperand zero_points{DataType::kInt32, integers.bytes()};
    const PartLimits limits{
        .few_scales = static_cast<int64_t>(random() % 40),
        .shared_scales = static_cast<int64_t>(random() % 80),
        .elements = kGroup * static_cast<int64_t>(1 + random() % 5),
        .scales = static_cast<int64_t>(1 + random() % 60),
    };
    const int64_t groups = (made.elements - 1) / kGroup + 1;
    const int64_t begin = static_cast<int64_t>(random() % groups) * kGroup;
    const int64_t end = begin + 1 + static_cast<int64_t>(random() % (made.elements - begin));
    std::mutex mutex;
    std::vector<Part> parts;
    std::vector<int> seen(static_cast<size_t>(made.elements));
    bool all_right = true;
    ErrorSums sums;
    const absl::Status status = ForEachGivenPart(
        layout, begin, end, &executor, &sums,
        [&](const GivenPart& given, ColumnReader& reader, Workers workers, ErrorSums* part_sums) {
          const float* const scale = reader.Floats(scales, given, 0);
          const int32_t* const zero_point = reader.Integers(zero_points, given, 1);
          const float* const own = reader.OwnFloats(zero_points, given, 2);
          EXPECT_EQ(reader.Floats({}, given, 0), nullptr);
          EXPECT_EQ(reader.Integers({}, given, 0), nullptr);
          part_sums->finite_elements += static_cast<uint64_t>(given.part.elements());
          BlockWalk walk(*given.layout, static_cast<int64_t>(given.part.first_scale));
          walk.Seek(given.part.begin);
          const std::lock_guard<std::mutex> lock(mutex);
          crossing += given.each ? 1 : 0;
          parts.push_back(given.part);
          EXPECT_TRUE(given.part.begin == begin || workers == nullptr);
          for (int64_t i = given.part.begin; i < given.part.end; ++i) {
            const int64_t entry = walk.Next(1).scale;
            const int64_t wanted = ScaleOf(layout, i);
            ++seen[static_cast<size_t>(i)];
            all_right &= entry >= 0 && entry < static_cast<int64_t>(given.part.scales) &&
                         scale[entry] == static_cast<float>(wanted) &&
                         zero_point[entry] == wanted && own[entry] == static_cast<float>(wanted);
          }
          return absl::OkStatus();
        },
        limits);
    ASSERT_TRUE(status.ok());
    ASSERT_TRUE(all_right) << "an element found another scale";
    ASSERT_EQ(sums.finite_elements, static_cast<uint64_t>(end - begin));
    for (int64_t i = 0; i < made.elements; ++i) {
      ASSERT_EQ(seen[static_cast<size_t>(i)], i >= begin && i < end ? 1 : 0) << "element " << i;
    }
    cut += parts.size() > 1 ? 1 : 0;
    for (const Part& part : parts) {
      ASSERT_EQ((part.begin - begin) % kGroup, 0);
      if (parts.size() == 1) continue;
      ASSERT_LE(part.elements(), limits.elements);
      ASSERT_LE(static_cast<int64_t>(part.scales), std::max(2 * limits.scales, kGroup));
    }
  }
  EXPECT_GT(cut, 30);
  EXPECT_GT(crossing, 10);
}

TEST(GivenScales, TheFirstErrorInTheOrderOfTheElementsIsReturned) {
  BlockLayout layout;
  layout.dimensions.push_back({10'000, 1, 1});
  layout.scale_count = 10'000;
  const PartLimits limits{.few_scales = 0, .shared_scales = 0, .elements = 640, .scales = 640};
  const absl::Status status = ForEachGivenPart(
      layout, 0, 10'000, nullptr, nullptr,
      [](const GivenPart& given, ColumnReader&, Workers, ErrorSums* sums) {
        EXPECT_EQ(sums, nullptr);
        return given.part.begin < 2000 ? absl::OkStatus()
                                       : absl::CancelledError(std::to_string(given.part.begin));
      },
      limits);
  EXPECT_EQ(status.message(), "2560");
  EXPECT_TRUE(ForEachGivenPart(layout, 0, 0, nullptr, nullptr,
                               [](const GivenPart&, ColumnReader&, Workers, ErrorSums*) {
                                 ADD_FAILURE() << "there is nothing";
                                 return absl::OkStatus();
                               })
                  .ok());
}

}  // namespace
}  // namespace quantd
