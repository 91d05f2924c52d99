// The cursor over bytes in pieces of every kind: whatever the pieces, the windows put together are
// the tensor, and they keep to the promises that the tile loops build on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "walk/cursor.h"

namespace quantd {
namespace {

// Bytes in pieces. Each piece is a heap block of its own, so that reading past one is found.
struct Pieces {
  std::vector<uint8_t> all;
  std::vector<std::vector<uint8_t>> parts;
  ByteChunks bytes;

  Pieces(size_t size, std::mt19937& random, size_t smallest, size_t largest) : all(size) {
    for (uint8_t& byte : all) byte = static_cast<uint8_t>(random());
    std::uniform_int_distribution<size_t> length(smallest, largest);
    for (size_t at = 0; at < size;) {
      const size_t part = std::min(length(random), size - at);
      parts.emplace_back(all.begin() + at, all.begin() + at + part);
      at += part;
    }
    for (const std::vector<uint8_t>& part : parts) bytes.Append(absl::MakeConstSpan(part));
  }
};

// Reads [begin, end) and returns its bytes.
std::vector<uint8_t> ReadRange(Cursor& cursor, int bits, int64_t elements, int64_t begin,
                               int64_t end, int64_t most) {
  std::vector<uint8_t> read;
  std::vector<uint8_t> buffer(Cursor::kBufferBytes);
  cursor.Seek(begin);
  while (cursor.element() < end) {
    const int64_t before = cursor.element();
    const Cursor::Window window = cursor.Next(end, most, buffer.data());
    EXPECT_EQ(window.begin, before);
    EXPECT_EQ(cursor.element(), before + window.elements);
    EXPECT_GE(window.elements, 1);
    EXPECT_LE(window.elements, most);
    EXPECT_LE(cursor.element(), end);
    if (cursor.element() != elements) {
      EXPECT_EQ(window.elements % Cursor::kGroup, 0);
    }
    read.insert(read.end(), window.data, window.data + (window.elements * bits + 7) / 8);
  }
  return read;
}

TEST(Cursor, WindowsAreTheTensorWhateverThePieces) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::pair<size_t, size_t> kinds[] = {{1, 1},     {1, 7},       {3, 3},
                                             {60, 70},   {255, 257},   {1, 9000},
                                             {511, 513}, {8000, 8200}, {1 << 20, 1 << 20}};
  for (int bits : {2, 4, 8, 16, 32}) {
    for (const auto& [smallest, largest] : kinds) {
      for (int64_t elements : {1, 3, 63, 64, 65, 1000, 1024, 1025, 5000, 40001}) {
        Pieces pieces((elements * bits + 7) / 8, random, smallest, largest);
        for (int64_t most : {64, 1024, 4096, 16384}) {
          Cursor cursor(pieces.bytes, bits);
          ASSERT_EQ(ReadRange(cursor, bits, elements, 0, elements, most), pieces.all)
              << bits << " bits, pieces of " << smallest << " to " << largest << ", " << elements
              << " elements, most " << most;
        }
      }
    }
  }
}

TEST(Cursor, StartsAndEndsAnywhereInGroups) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int bits : {2, 4, 8, 16, 32}) {
    const int64_t elements = 30'011;
    Pieces pieces((elements * bits + 7) / 8, random, 1, 3000);
    Cursor cursor(pieces.bytes, bits);
    for (int round = 0; round < 200; ++round) {
      const int64_t groups = elements / Cursor::kGroup;
      const int64_t begin = static_cast<int64_t>(random() % (groups + 1)) * Cursor::kGroup;
      const int64_t left = (elements - begin) / Cursor::kGroup;
      int64_t end = begin + static_cast<int64_t>(random() % (left + 1)) * Cursor::kGroup;
      if (round % 3 == 0) end = elements;
      const std::vector<uint8_t> expected(pieces.all.begin() + begin * bits / 8,
                                          pieces.all.begin() + (end * bits + 7) / 8);
      ASSERT_EQ(ReadRange(cursor, bits, elements, begin, end, 1024), expected)
          << bits << " bits, [" << begin << ", " << end << ")";
    }
  }
}

TEST(Cursor, UsesLongPiecesInPlace) {
  std::mt19937 random(1);
  const int64_t elements = 64 * 1024;
  Pieces pieces(elements * 4, random, 8192 - 5, 8192 - 5);
  Cursor cursor(pieces.bytes, 32);
  std::vector<uint8_t> buffer(Cursor::kBufferBytes);
  int64_t gathered = 0;
  int calls = 0;
  while (cursor.element() < elements) {
    const Cursor::Window window = cursor.Next(elements, 16384, buffer.data());
    if (window.data == buffer.data()) gathered += window.elements;
    ++calls;
  }
  // One group a cut between pieces, two calls a piece.
  EXPECT_LE(gathered, static_cast<int64_t>(pieces.bytes.chunk_count()) * Cursor::kGroup);
  EXPECT_LE(calls, 2 * static_cast<int>(pieces.bytes.chunk_count()) + 1);
}

TEST(Cursor, GathersShortPiecesIntoWholeTiles) {
  std::mt19937 random(1);
  Pieces pieces(1024 * 4 * 4, random, 1, 1);
  Cursor cursor(pieces.bytes, 32);
  std::vector<uint8_t> buffer(Cursor::kBufferBytes);
  int calls = 0;
  for (; cursor.element() < 4096; ++calls) cursor.Next(4096, 16384, buffer.data());
  EXPECT_EQ(calls, 4);
}

}  // namespace
}  // namespace quantd
