// Compressed responses: they can be inflated again, are smaller, and take no more memory than
// announced.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "frames.h"
#include "malloced.h"
#include "server/transport/encoding.h"
#include "server/transport/head.h"

namespace quantd::transport {
namespace deflater_test {

absl::Span<const uint8_t> View(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

bool Never() { return false; }

// Codes; small ones are more frequent.
std::string Codes(size_t size) {
  std::string bytes = Pattern(size, size);
  for (char& byte : bytes) {
    const auto code = static_cast<uint8_t>(byte);
    byte = static_cast<char>(code & (code >> 4 | 1));
  }
  return bytes;
}

std::optional<std::string> Inflate(Encoding encoding, absl::Span<const uint8_t> bytes,
                                   size_t size) {
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, WindowBits(encoding)), Z_OK);
  std::string plain(size + 1, '\0');
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(plain.data());
  stream.avail_out = static_cast<uInt>(plain.size());
  const bool whole = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0;
  plain.resize(stream.total_out);
  inflateEnd(&stream);
  return whole ? std::optional(plain) : std::nullopt;
}

TEST(Deflate, IsInflatedAgain) {
  memory::Pool pool;
  for (const Encoding encoding : {Encoding::kGzip, Encoding::kDeflate}) {
    for (const Contents contents : {Contents::kCodes, Contents::kNumbers}) {
      for (const size_t size :
           {100, 1'000, 65'535, 65'536, 65'537, 524'287, 524'288, 524'289, 5'000'000}) {
        const std::string bytes = Codes(size);
        const memory::Piece piece = Deflate(encoding, View(bytes), contents, 5, pool, Never);
        ASSERT_NE(piece.begin, nullptr) << size;
        EXPECT_EQ(piece.begin, piece.buffer.data() + 5);
        EXPECT_LT(piece.size, size);
        const auto plain = Inflate(encoding, {piece.begin, piece.size}, size);
        ASSERT_TRUE(plain.has_value()) << size;
        EXPECT_TRUE(*plain == bytes) << size;
      }
    }
  }
  EXPECT_EQ(pool.used_bytes(), 0U);
}

TEST(Deflate, WhatDoesNotGetSmallerIsLeft) {
  memory::Pool pool;
  EXPECT_EQ(Deflate(Encoding::kGzip, {}, Contents::kCodes, 5, pool, Never).begin, nullptr);
  for (const Contents contents : {Contents::kCodes, Contents::kNumbers}) {
    for (const size_t size : {1, 10, 1'000, 65'536, 524'288, 600'000}) {
      const std::string bytes = Pattern(size, size);
      const memory::Piece piece = Deflate(Encoding::kGzip, View(bytes), contents, 5, pool, Never);
      EXPECT_EQ(piece.begin, nullptr) << size;
      EXPECT_EQ(piece.buffer.data(), nullptr);
    }
  }
}

// It gives up after half a MiB, not at the end, although it would have become smaller by then.
TEST(Deflate, WhatDoesNotShrinkIsSeenSoon) {
  memory::Pool pool;
  std::string bytes = Pattern(1, 640 << 10) + std::string(16 << 20, '\0');
  int asked = 0;
  const auto count = [&asked] { return ++asked > 100'000; };
  EXPECT_EQ(Deflate(Encoding::kGzip, View(bytes), Contents::kCodes, 0, pool, count).begin, nullptr);
  EXPECT_LE(asked, 8);
}

TEST(Deflate, StopsWhenItIsInterrupted) {
  memory::Pool pool;
  const std::string bytes = Codes(10 << 20);
  int asked = 0;
  const auto third = [&asked] { return ++asked == 3; };
  EXPECT_EQ(Deflate(Encoding::kGzip, View(bytes), Contents::kCodes, 0, pool, third).begin, nullptr);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(pool.used_bytes(), 0U);
}

// The memory that it has in the middle of its work, as malloc and the pool count it.
TEST(Deflate, TakesNoMoreMemoryThanItSays) {
  memory::Pool pool;
  const auto allocated = [&pool] { return MallocedBytes() + pool.used_bytes(); };
  for (const size_t size : {70'000, 127'000, 5'000'000}) {
    for (const Contents contents : {Contents::kCodes, Contents::kNumbers}) {
      const std::string bytes = Codes(size);
      const uint64_t before = allocated();
      memory::Buffer alone = pool.Allocate(size + 5);
      const uint64_t rounded = allocated() - before;
      ASSERT_GE(rounded, size + 5);
      alone = memory::Buffer();
      uint64_t most = 0;
      const auto look = [&] {
        most = std::max(most, allocated() - before);
        return false;
      };
      EXPECT_NE(Deflate(Encoding::kGzip, View(bytes), contents, 5, pool, look).begin, nullptr);
      EXPECT_GE(most, rounded + (256 << 10)) << size;  // with zlib's tables
      EXPECT_LE(most - rounded, DeflateMemoryBytes(size, 5) - (size + 5)) << size;
    }
  }
}

TEST(Encodings, AreThoseThatAreNamed) {
  const Encodings none = Encodings::Parse("");
  EXPECT_TRUE(none.Has(Encoding::kIdentity));
  EXPECT_FALSE(none.Has(Encoding::kGzip) || none.Has(Encoding::kDeflate));
  EXPECT_EQ(none.best(), Encoding::kIdentity);
  const Encodings all = Encodings::Parse("br,deflate , gzip,snappy");
  EXPECT_TRUE(all.Has(Encoding::kIdentity) && all.Has(Encoding::kGzip));
  EXPECT_EQ(all.best(), Encoding::kGzip);
  EXPECT_EQ(Encodings::Parse("identity,deflate").best(), Encoding::kDeflate);
  EXPECT_EQ(Encodings::Parse("gzipped,GZIP").best(), Encoding::kIdentity);
}

TEST(CallHead, SaysHowItWantsResponses) {
  const auto wanted = [](absl::string_view text) {
    Head head;
    head.Add("quantd-compress-answers", text);
    return std::pair(head.responses(), std::string(head.Check().message()));
  };
  EXPECT_EQ(Head().responses(), std::nullopt);
  EXPECT_EQ(wanted("gzip"), std::pair(std::optional(Encoding::kGzip), std::string()));
  EXPECT_EQ(wanted("deflate"), std::pair(std::optional(Encoding::kDeflate), std::string()));
  EXPECT_EQ(wanted("none"), std::pair(std::optional(Encoding::kIdentity), std::string()));
  EXPECT_EQ(wanted("").second, "quantd-compress-answers is '', must be none, gzip or deflate");
  const std::string cut(64, 'g');
  EXPECT_EQ(wanted(std::string(1'000, 'g')).second,
            "quantd-compress-answers is '" + cut + "', must be none, gzip or deflate");
}

}  // namespace deflater_test
}  // namespace quantd::transport
