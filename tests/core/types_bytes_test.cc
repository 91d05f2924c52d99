// ByteChunks: every range of a few pieces reads as from one.
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "quantd/bytes.h"

namespace quantd {
namespace {

TEST(ByteChunks, ReadsEveryRangeAcrossPieces) {
  std::vector<uint8_t> whole(23);
  std::iota(whole.begin(), whole.end(), uint8_t{1});
  ByteChunks chunks;
  const absl::Span<const uint8_t> all(whole);
  chunks.Append(all.subspan(0, 1));
  chunks.Append(all.subspan(1, 0));
  chunks.Append(all.subspan(1, 7));
  chunks.Append(all.subspan(8, 2));
  chunks.Append(all.subspan(10));
  EXPECT_EQ(chunks.size(), whole.size());
  EXPECT_EQ(chunks.chunk_count(), 4u) << "empty pieces are left out";
  for (size_t begin = 0; begin <= whole.size(); ++begin) {
    for (size_t end = begin; end <= whole.size(); ++end) {
      std::vector<uint8_t> out(end - begin);
      chunks.CopyTo(begin, absl::MakeSpan(out));
      EXPECT_EQ(out, std::vector<uint8_t>(whole.begin() + begin, whole.begin() + end));
    }
  }
}

TEST(ByteChunks, FindsThePieceOfAnOffset) {
  const std::vector<uint8_t> bytes(10);
  const absl::Span<const uint8_t> all(bytes);
  ByteChunks chunks;
  chunks.Append(all.subspan(0, 3));
  chunks.Append(all.subspan(3, 7));
  EXPECT_EQ(chunks.FindChunk(0), 0u);
  EXPECT_EQ(chunks.FindChunk(2), 0u);
  EXPECT_EQ(chunks.FindChunk(3), 1u);
  EXPECT_EQ(chunks.FindChunk(9), 1u);
  EXPECT_EQ(chunks.chunk_begin(1), 3u);
  chunks.Clear();
  EXPECT_EQ(chunks.size(), 0u);
}

}  // namespace
}  // namespace quantd
