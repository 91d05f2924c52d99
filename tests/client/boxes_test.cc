// Copies of elements of every width, against a copy bit by bit; and the description of every type.
#include "split/boxes.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "split/elements.h"

namespace quantd::client::split {
namespace {

bool BitOf(const std::string& bytes, int64_t bit) {
  return (static_cast<uint8_t>(bytes[static_cast<size_t>(bit / 8)]) >> (bit % 8) & 1) != 0;
}

std::string RandomBytes(std::mt19937& random, int64_t count) {
  std::string bytes(static_cast<size_t>(count), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// The buffers end where the elements end, so that AddressSanitizer sees an access beyond.
TEST(Boxes, CopyElementsOfEveryWidthFromAnyPlaceToAny) {
  std::mt19937 random(1);
  for (const int bits : {1, 2, 3, 4, 5, 6, 7, 8, 16, 32}) {
    for (int64_t from = 0; from < 9; ++from) {
      for (int64_t to = 0; to < 9; ++to) {
        for (int64_t count = 0; count < 35; ++count) {
          const std::string source = RandomBytes(random, BytesOf(from + count, bits));
          std::string copied = RandomBytes(random, BytesOf(to + count, bits));
          const std::string before = copied;
          CopyElements(source, from, copied, to, count, bits);
          for (int64_t bit = 0; bit < static_cast<int64_t>(copied.size()) * 8; ++bit) {
            const int64_t at = bit - to * bits;
            const bool inside = at >= 0 && at < count * bits;
            ASSERT_EQ(BitOf(copied, bit),
                      inside ? BitOf(source, from * bits + at) : BitOf(before, bit))
                << bits << " bits, " << count << " elements from " << from << " to " << to;
          }
        }
      }
    }
  }
}

TEST(Boxes, BytesAreRoundedUpAndDoNotOverflow) {
  for (const int bits : {1, 2, 3, 4, 5, 6, 7, 8, 16, 32}) {
    for (int64_t count = 0; count < 20; ++count)
      EXPECT_EQ(BytesOf(count, bits), (count * bits + 7) / 8);
    EXPECT_EQ(BytesOf(int64_t{1} << 58, bits), (int64_t{1} << 55) * bits);
  }
}

TEST(Boxes, EveryDataTypeHasAWidth) {
  for (int number = v1::DataType_MIN; number <= v1::DataType_MAX; ++number) {
    if (!v1::DataType_IsValid(number)) continue;
    const auto type = static_cast<v1::DataType>(number);
    EXPECT_EQ(BitsOf(type) > 0, type != v1::DATA_TYPE_UNSPECIFIED) << v1::DataType_Name(type);
  }
  EXPECT_EQ(BitsOf(static_cast<v1::DataType>(9999)), 0);
}

}  // namespace
}  // namespace quantd::client::split
