// Boxes of tensors of random shapes, types and orders, against a copy element by element.
#include "box.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "absl/strings/str_cat.h"

namespace quantd::cli {
namespace {

int GetElement(const std::vector<uint8_t>& bytes, int64_t index, int bits) {
  const int64_t bit = index * bits;
  return bytes[bit / 8] >> (bit % 8) & ((1 << bits) - 1);
}

// The flat index, in a row-major tensor of `shape` or one with `strides`, of the n-th element of
// box.
int64_t IndexIn(const Box& box, int64_t n, const Shape& strides) {
  int64_t flat = 0;
  for (size_t d = box.size.size(); d-- > 0;) {
    flat += (box.begin[d] + n % box.size[d]) * strides[d];
    n /= box.size[d];
  }
  return flat;
}

TEST(Box, GatherAndScatterOfPackedAndWholeElements) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    const int bits = std::vector<int>{2, 4, 8, 16, 32, 64}[random() % 6];
    Box box;
    Shape shape;
    for (size_t d = random() % 5; d > 0; --d) {
      shape.push_back(1 + random() % 6);
      box.begin.push_back(random() % shape.back());
      box.size.push_back(1 + random() % (shape.back() - box.begin.back()));
    }
    const bool fortran = bits >= 8 && random() % 2 == 0;
    const Shape strides = fortran ? ColumnMajorStrides(shape) : RowMajorStrides(shape);
    std::vector<uint8_t> tensor((Product(shape) * bits + 7) / 8);
    for (uint8_t& byte : tensor) byte = static_cast<uint8_t>(random());

    const std::string packed = GatherBox(tensor, bits, strides, box);
    const std::vector<uint8_t> got(packed.begin(), packed.end());
    ASSERT_EQ(got.size(), static_cast<size_t>((Product(box.size) * bits + 7) / 8));
    // Elements wider than a byte are compared byte by byte.
    const int unit = std::min(bits, 8), units = bits / unit;
    for (int64_t n = 0; n < Product(box.size); ++n) {
      for (int u = 0; u < units; ++u) {
        ASSERT_EQ(GetElement(got, n * units + u, unit),
                  GetElement(tensor, IndexIn(box, n, strides) * units + u, unit))
            << "bits " << bits << " element " << n << " of " << ShapeString(box.size) << " in "
            << ShapeString(shape);
      }
    }

    // Scattering into other bytes changes the box and nothing else.
    std::vector<uint8_t> target(tensor.size());
    for (uint8_t& byte : target) byte = static_cast<uint8_t>(random());
    std::vector<uint8_t> expected = target;
    const Shape row_major = RowMajorStrides(shape);
    for (int64_t n = 0; n < Product(box.size); ++n) {
      for (int u = 0; u < units; ++u) {
        const int64_t bit = (IndexIn(box, n, row_major) * units + u) * unit;
        const int mask = ((1 << unit) - 1) << (bit % 8);
        expected[bit / 8] = static_cast<uint8_t>((expected[bit / 8] & ~mask) |
                                                 GetElement(got, n * units + u, unit) << (bit % 8));
      }
    }
    ScatterBox(got, bits, shape, box, absl::MakeSpan(target));
    ASSERT_EQ(target, expected) << "bits " << bits;
  }
}

}  // namespace
}  // namespace quantd::cli
