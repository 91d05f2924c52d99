// What is known of x when the whole message has arrived.
#include "server/rpc/arriving_range.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "testing.h"

namespace quantd::rpc {
namespace {

constexpr int64_t kElements = 600'001;

v1::DynamicQuantizeRequest Request() {
  v1::DynamicQuantizeRequest request;
  *request.mutable_x() = Floats({kElements});
  auto* const values = reinterpret_cast<float*>(request.mutable_x()->mutable_raw_data()->data());
  for (int64_t i = 0; i < kElements; ++i) values[i] = static_cast<float>(i % 1'001) - 300;
  return request;
}

absl::Span<const uint8_t> BytesOf(const std::string& message) {
  return {reinterpret_cast<const uint8_t*>(message.data()), message.size()};
}

// The range of `elements` at the end of `message`, which arrives in pieces of `piece` bytes.
RangeSoFar Watch(const std::string& message, size_t piece, int64_t elements = kElements) {
  const absl::Span<const uint8_t> bytes = BytesOf(message);
  ArrivingRange range;
  for (size_t end = 0; end < bytes.size();) {
    end = std::min(bytes.size(), end + piece);
    range.OnMore(bytes.first(end), bytes.size());
  }
  TensorView x;
  x.data_type = DataType::kFloat;
  x.bytes = bytes.last(static_cast<size_t>(elements) * 4);
  return range.Of(x, bytes);
}

TEST(ArrivingRange, IsThatOfAll) {
  const std::string message = Request().SerializeAsString();
  for (const size_t piece : {size_t{1} << 30, size_t{100'000}, size_t{16'384}, size_t{777}}) {
    const RangeSoFar range = Watch(message, piece);
    EXPECT_EQ(range.elements, kElements);
    EXPECT_EQ(range.minimum, -300);
    EXPECT_EQ(range.maximum, 700);
    EXPECT_TRUE(range.finite);
  }
}

TEST(ArrivingRange, NothingOfAnotherTensor) {
  const std::string message = Request().SerializeAsString();
  const absl::Span<const uint8_t> bytes = BytesOf(message);
  ArrivingRange range;
  range.OnMore(bytes, bytes.size());
  TensorView x;
  x.data_type = DataType::kFloat;
  x.bytes = bytes.last(kElements * 4 - 4);
  EXPECT_EQ(range.Of(x, bytes).elements, 0);
  x.bytes = bytes.last(kElements * 4);
  x.data_type = DataType::kBfloat16;
  EXPECT_EQ(range.Of(x, bytes).elements, 0);
  x.data_type = DataType::kFloat;
  EXPECT_EQ(range.Of(x, bytes.subspan(1)).elements, 0);
}

// Unknown fields are read once, however small the pieces are.
TEST(ArrivingRange, IsNotLookedForBehindManyFields) {
  for (const size_t fields : {size_t{100}, size_t{100'000}}) {
    std::string message;
    for (size_t i = 0; i < fields; ++i) message += "\xf8\x7f\x01";
    message += Request().SerializeAsString();
    EXPECT_EQ(Watch(message, 1'000).elements, fields == 100 ? kElements : 0);
  }
}

TEST(ArrivingRange, NotOfSmallMessages) {
  v1::DynamicQuantizeRequest request;
  *request.mutable_x() = Floats({100'000});
  EXPECT_EQ(Watch(request.SerializeAsString(), size_t{1} << 30, 100'000).elements, 0);
}

}  // namespace
}  // namespace quantd::rpc
