// The size of a response, known before it is made.
#include "server/wire/response_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "server/wire/encode.h"
#include "server/wire/response_parts.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace {

TEST(ResponseLayoutTest, SizesDoNotOverflow) {
  ResponseLayout layout;
  layout.y = {DataType::kFloat, {0}, 0, 0};
  layout.y_scale = {DataType::kFloat, {int64_t{1} << 61}, int64_t{1} << 61, uint64_t{1} << 63};
  layout.y_zero_point = {DataType::kInt32, {int64_t{1} << 61}, int64_t{1} << 61, uint64_t{1} << 63};
  EXPECT_EQ(MaxEncodedBytes(layout), ~uint64_t{0});
  layout.encoding = Encoding::kValues;
  EXPECT_EQ(MaxEncodedBytes(layout), ~uint64_t{0});
  EXPECT_EQ(ResponseMemoryBytes(layout), ~uint64_t{0});
}

}  // namespace
}  // namespace quantd::wire
