// The transport's small parts: calls' headers and their text, credit for frames.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "../loop/loop_testing.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "server/scheduling/places.h"
#include "server/transport/encoding.h"
#include "server/transport/frame_credit.h"
#include "server/transport/head.h"

namespace quantd::transport {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;

Head Good() {
  Head head;
  head.Add(":method", "POST");
  head.Add(":path", "/a/B");
  head.Add("content-type", "application/grpc");
  head.Add("te", "trailers");
  return head;
}

TEST(Head, TimeoutsOfEveryUnit) {
  const nanoseconds most = hours(366 * 24);
  const std::vector<std::pair<std::string, nanoseconds>> good = {
      {"0n", nanoseconds(0)},
      {"1n", nanoseconds(1)},
      {"99999999n", nanoseconds(99'999'999)},
      {"7u", std::chrono::microseconds(7)},
      {"99999999u", std::chrono::microseconds(99'999'999)},
      {"250m", std::chrono::milliseconds(250)},
      {"00000001S", std::chrono::seconds(1)},
      {"31622400S", most},
      {"31622401S", most},
      {"99999999S", most},
      {"5M", std::chrono::minutes(5)},
      {"99999999M", most},
      {"1H", hours(1)},
      {"8784H", most},
      {"99999999H", most},
  };
  for (const auto& [text, time] : good) {
    Head head = Good();
    head.Add("grpc-timeout", text);
    EXPECT_TRUE(head.Check().ok()) << text;
    EXPECT_EQ(head.timeout(), time) << text;
  }
  for (const char* text : {"", "n", "1", "1x", "-1n", "+1n", " 1n", "1 n", "1n ", "1.5S", "1ns",
                           "100000000n", "0x1n", "1s", "1h", "\xB2n", "1\xC0"}) {
    Head head = Good();
    head.Add("grpc-timeout", text);
    EXPECT_EQ(head.Check().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_FALSE(head.timeout().has_value());
  }
}

TEST(Head, ContentTypesAndMethods) {
  for (const char* type : {"application/grpc", "application/grpc+proto", "application/grpc+json",
                           "application/grpc;charset=utf-8"}) {
    Head head = Good();
    head.Add("content-type", type);
    EXPECT_EQ(head.HttpError(), 0) << type;
  }
  for (const char* type : {"", "application/grpcx", "application/grpc-web", "application/grp",
                           "text/html", " application/grpc"}) {
    Head head = Good();
    head.Add("content-type", type);
    EXPECT_EQ(head.HttpError(), 415) << type;
  }
  for (const char* method : {"GET", "post", "", "POSTS", "PUT"}) {
    Head head = Good();
    head.Add(":method", method);
    EXPECT_EQ(head.HttpError(), 405) << method;
  }
  EXPECT_EQ(Head().HttpError(), 405);
}

TEST(Head, CompressionIsRefused) {
  Head head = Good();
  head.Add("grpc-encoding", "identity");
  EXPECT_TRUE(head.Check().ok());
  head.Add("grpc-encoding", "gzip" + std::string(10'000, 'x'));
  EXPECT_EQ(head.Check().code(), absl::StatusCode::kUnimplemented);
  EXPECT_LT(head.Check().message().size(), 200U);
  EXPECT_TRUE(absl::StrContains(head.Check().message(), kEncodings));
}

TEST(Head, TellsWhoAsksAndForWhat) {
  constexpr char kTrace[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  Head head = Good();
  EXPECT_FALSE(head.trace().has_value());
  EXPECT_FALSE(head.wants_timing());
  EXPECT_EQ(head.request_id(), "");
  head.Add("x-request-id", "id" + std::string(10'000, 'x'));
  head.Add("quantd-timing", "1");
  head.Add("traceparent", kTrace);
  ASSERT_TRUE(head.trace().has_value());
  EXPECT_TRUE(head.wants_timing());
  EXPECT_EQ(head.request_id().size(), Head::kMostRequestId);
  EXPECT_TRUE(head.Check().ok());
  head.Add("traceparent", kTrace);  // two of them: neither is used
  EXPECT_FALSE(head.trace().has_value());
  head.Add("traceparent", kTrace);
  EXPECT_FALSE(head.trace().has_value());
  Head malformed = Good();
  malformed.Add("traceparent", "00-x");
  malformed.Add("quantd-timing", "11");
  EXPECT_FALSE(malformed.trace().has_value());
  EXPECT_FALSE(malformed.wants_timing());
  EXPECT_TRUE(malformed.Check().ok());
}

TEST(Head, IsOfSoManyBytesAndNoMore) {
  Head full;
  const size_t left = Head::kMaxBytes - 5 - 6 - 32;  // ":path", "/a/B/c"
  EXPECT_TRUE(full.Add(":path", "/a/B/c"));
  EXPECT_TRUE(full.Add("x", std::string(left - 33, 'v')));
  EXPECT_NE(full.Check().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(full.Add("", ""));
  EXPECT_EQ(full.Check().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(full.Add(":path", "/other"));
  EXPECT_EQ(full.path(), "/a/B/c");
}

TEST(HeaderEncoding, PercentComesBackAndIsPrintable) {
  EXPECT_EQ(PercentEncode(""), "");
  EXPECT_EQ(PercentEncode("100 %\n\xC3\xA4~ \x7F"), "100 %25%0A%C3%A4~ %7F");
  EXPECT_EQ(PercentEncode(std::string(1, '\0')), "%00");
  loop::Random random(loop::TestSeed());
  for (int round = 0; round < 2'000; ++round) {
    std::string text(loop::Below(random, 100), '\0');
    for (char& c : text) c = static_cast<char>(random());
    const std::string encoded = PercentEncode(text);
    std::string decoded;
    for (size_t i = 0; i < encoded.size(); ++i) {
      ASSERT_TRUE(encoded[i] >= ' ' && encoded[i] <= '~');
      if (encoded[i] == '%') {
        decoded += static_cast<char>(std::stoi(encoded.substr(i + 1, 2), nullptr, 16));
        i += 2;
      } else {
        decoded += encoded[i];
      }
    }
    ASSERT_EQ(decoded, text);
    std::string back;
    const std::string binary = Base64Encode(text);
    ASSERT_EQ(binary.find_first_of("=\n"), std::string::npos);
    ASSERT_TRUE(absl::Base64Unescape(binary, &back));
    ASSERT_EQ(back, text);
  }
}

// Padded or not, several in one header or in several; text that is not Base64 is left out. Each
// comma separates a value with its own name: a header of 16 KiB would need more than 1 MiB.
TEST(Metadata, ValuesInOneHeaderCountAsHeaders) {
  Head head;
  ASSERT_TRUE(head.Add("b-bin", std::string(100, ',')));
  head.Keep("b-bin", std::string(100, ','));
  EXPECT_EQ(head.metadata().size(), 101U);
  head.Keep("b", std::string(1'000, ','));
  EXPECT_EQ(head.metadata().size(), 102U);
  EXPECT_TRUE(head.Check().ok());
  head.Keep("b-bin", std::string(1'000, ','));
  EXPECT_EQ(head.metadata().size(), 102U);
  EXPECT_EQ(head.Check().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Metadata, BinaryMetadata) {
  Metadata metadata;
  ParseMetadata("a", "x,y", metadata);
  ParseMetadata("a", "x,y", metadata);
  ParseMetadata("b-bin", "AAE=,AAE , AA==", metadata);
  ParseMetadata("b-bin", "?", metadata);
  ParseMetadata("b-bin", "", metadata);
  const std::string zero_one("\0\1", 2), zero("\0", 1);
  const Metadata expected = {{"a", "x,y"},        {"a", "x,y"},    {"b-bin", zero_one},
                             {"b-bin", zero_one}, {"b-bin", zero}, {"b-bin", ""}};
  EXPECT_EQ(metadata, expected);
  EXPECT_EQ(EncodeMetadata("b-bin", zero_one), "AAE");
  EXPECT_EQ(EncodeMetadata("a", "x y"), "x y");
}

TEST(FrameCredit, SpendsEarnsAndWaits) {
  const FrameCredit::Clock::time_point start{};
  FrameCredit credit(start);
  credit.EarnMessage();  // it has at most kMost
  credit.Spend(FrameCredit::kMost);
  EXPECT_FALSE(credit.spent());
  credit.Spend(1);
  EXPECT_TRUE(credit.spent());
  credit.EarnBytes(16 << 10);
  EXPECT_FALSE(credit.spent());
  credit.Spend(FrameCredit::kOfMessage + 1);
  EXPECT_TRUE(credit.spent());
  credit.EarnMessage();
  EXPECT_TRUE(credit.spent());
  // After the pause there is some again, however many connections share it.
  for (const int64_t sharers : {-1, 0, 1, 2, 10}) {
    FrameCredit flood(start);
    flood.Spend(2 * FrameCredit::kMost);
    const auto pause = flood.Pause(sharers);
    EXPECT_GE(pause, std::chrono::milliseconds(5));
    EXPECT_LE(pause, std::chrono::milliseconds(5'000));
    flood.Refill(start + pause, sharers);
    EXPECT_EQ(flood.spent(), pause == std::chrono::milliseconds(5'000)) << sharers;
  }
  // The rate of all of them over 10 s: 10,000 a second.
  FrameCredit steady(start);
  int frames = 0;
  for (int i = 1; i <= 10'000; ++i) {
    steady.Refill(start + std::chrono::milliseconds(i), 1);
    for (; !steady.spent(); ++frames) steady.Spend(1);
  }
  EXPECT_NEAR(frames, 100'000 + FrameCredit::kMost, 100);
  EXPECT_EQ(FrameCredit(start).Pause(1'000'000).count(), 5);
}

}  // namespace
}  // namespace quantd::transport
