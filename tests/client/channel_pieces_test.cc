// Tensors in pieces that keep their channels: together, the pieces contain every value, in the same
// channel, whatever the shape, the axis and the size of a message.
#include "split/channel_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace quantd::client::split {
namespace {

using Shape = std::vector<int64_t>;

std::string Numbers(size_t count) {
  std::vector<int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return {reinterpret_cast<const char*>(numbers.data()), count * sizeof(int32_t)};
}

// The values of each channel, in any order.
using Channels = std::map<int64_t, std::multiset<int32_t>>;
void Add(absl::Span<const int64_t> shape, absl::string_view data, std::optional<int64_t> axis,
         Channels* channels) {
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t count = 1, inner = 1;
  if (axis.has_value()) {
    const int64_t at = *axis < 0 ? *axis + rank : *axis;
    count = shape[static_cast<size_t>(at)];
    for (int64_t i = at + 1; i < rank; ++i) inner *= shape[static_cast<size_t>(i)];
  }
  for (size_t i = 0; i < data.size() / 4; ++i) {
    int32_t value;
    std::memcpy(&value, data.data() + 4 * i, sizeof(value));
    const int64_t channel = axis.has_value() ? static_cast<int64_t>(i) / inner % count : 0;
    (*channels)[channel].insert(value);
  }
}

TEST(ChannelPieces, AreEveryValueOfItsChannel) {
  std::mt19937_64 random(7);
  size_t cut = 0;
  for (int i = 0; i < 3000; ++i) {
    Shape shape(random() % 5);
    size_t count = 1;
    for (int64_t& dimension : shape) {
      dimension = static_cast<int64_t>(1 + random() % 9);
      count *= static_cast<size_t>(dimension);
    }
    std::optional<int64_t> axis;
    const auto rank = static_cast<int64_t>(shape.size());
    if (rank > 0 && random() % 4 > 0) {
      axis = static_cast<int64_t>(random() % (2 * shape.size())) - rank;
    }
    const uint64_t most = 4 + random() % 400;
    const std::string data = Numbers(count);
    Channels whole, together;
    Add(shape, data, axis, &whole);
    size_t pieces = 0;
    const uint64_t column = 4 * whole.size();
    const absl::Status status = ForEachChannelPiece(
        v1::DATA_TYPE_INT32, shape, data, axis, most,
        [&](absl::Span<const int64_t> piece_shape, absl::string_view piece) {
          ++pieces;
          size_t elements = 1;
          for (const int64_t dimension : piece_shape) elements *= static_cast<size_t>(dimension);
          EXPECT_EQ(piece_shape.size(), shape.size());
          EXPECT_EQ(4 * elements, piece.size());
          EXPECT_LE(piece.size(), std::max(most, column));
          if (axis.has_value()) {
            const auto at = static_cast<size_t>(*axis < 0 ? *axis + rank : *axis);
            EXPECT_EQ(piece_shape[at], shape[at]);
          }
          Add(piece_shape, piece, axis, &together);
          return absl::OkStatus();
        });
    EXPECT_EQ(status, absl::OkStatus());
    ASSERT_EQ(together, whole) << "case " << i;
    cut += pieces > 1 ? 1 : 0;
  }
  EXPECT_GT(cut, 1000u);
}

TEST(ChannelPieces, WhatTheServerMustRefuseIsSentAsItIs) {
  const std::string data = Numbers(8);
  struct Case {
    v1::DataType type;
    Shape shape;
    std::optional<int64_t> axis;
  };
  for (const Case& c : std::vector<Case>{{v1::DATA_TYPE_UINT8, {32}, {}},
                                         {v1::DATA_TYPE_FLOAT, {9}, {}},
                                         {v1::DATA_TYPE_FLOAT, {8}, 1},
                                         {v1::DATA_TYPE_FLOAT, {-8}, 0},
                                         {v1::DATA_TYPE_FLOAT, {0, 8}, 0},
                                         {v1::DATA_TYPE_FLOAT, {1 << 30, 1 << 30, 1 << 30}, 0}}) {
    int sent = 0;
    EXPECT_EQ(ForEachChannelPiece(c.type, c.shape, data, c.axis, 8,
                                  [&](absl::Span<const int64_t> shape, absl::string_view bytes) {
                                    ++sent;
                                    EXPECT_EQ(Shape(shape.begin(), shape.end()), c.shape);
                                    EXPECT_EQ(bytes, data);
                                    return absl::OkStatus();
                                  }),
              absl::OkStatus());
    EXPECT_EQ(sent, 1);
  }
}

TEST(ChannelPieces, TheFirstFailureIsTheLastPiece) {
  int sent = 0;
  const absl::Status status =
      ForEachChannelPiece(v1::DATA_TYPE_INT32, Shape{100}, Numbers(100), {}, 40,
                          [&](absl::Span<const int64_t>, absl::string_view) {
                            return ++sent == 3 ? absl::InternalError("no") : absl::OkStatus();
                          });
  EXPECT_EQ(status.message(), "no");
  EXPECT_EQ(sent, 3);
}

}  // namespace
}  // namespace quantd::client::split
