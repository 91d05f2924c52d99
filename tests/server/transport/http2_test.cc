// The codec alone: frames in, events and frames out.
#include "server/transport/http2.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frames.h"

namespace quantd::transport {
namespace http2_test {
namespace {

// A stream that sends `out` once it is asked to, and notes what comes.
class TestStream final : public Stream {
 public:
  TestStream(Http2& http2, int32_t id) : http2_(http2), id_(id) {}
  void OnFrame(size_t bytes) override { events += "frame " + std::to_string(bytes) + ";"; }
  void OnData(const uint8_t* bytes, size_t size) override {
    data.append(reinterpret_cast<const char*>(bytes), size);
  }
  absl::Span<uint8_t> Place() const override { return {}; }
  void OnPadding(int64_t window) override { events += "padding " + std::to_string(window) + ";"; }
  void OnRemoteEnd() override { events += "end;"; }
  void OnClosed() override { events += "closed;"; }
  Offer NextFrame(size_t most) override {
    const size_t size = std::min(most, out.size() - pulled_);
    const bool ends = finishes && pulled_ + size == out.size();
    if (ends) http2_.SendTrailers(id_, {});
    return {size, makes, ends};
  }
  const uint8_t* Pull(size_t size) override {
    pulled_ += size;
    return reinterpret_cast<const uint8_t*>(out.data()) + pulled_ - size;
  }
  void Sent(size_t size) override { sent += size; }
  void OnEndSent() override { events += "sent;"; }

  std::string events, data, out;
  bool finishes = false;
  bool makes = false;
  size_t sent = 0;

 private:
  Http2& http2_;
  const int32_t id_;
  size_t pulled_ = 0;
};

class Http2Test : public testing::Test, public Http2::Owner {
 protected:
  struct Sent {
    uint8_t type, flags;
    int32_t id;
    std::string payload;
  };

  Http2Test() {
    EXPECT_TRUE(http2_.Begin(10, 1'000));
    EXPECT_EQ(Feed(kPreface + Settings({}) + SettingsAck()), Http2::Fed::kOk);
    Written();
  }
  Http2::Fed Feed(const std::string& bytes) {
    return http2_.Feed(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  // The frames that are made now.
  std::vector<Sent> Written() {
    std::string bytes;
    while (http2_.Fill() && !http2_.empty()) {
      std::array<iovec, 3> pieces;
      const size_t count = http2_.Pieces(absl::MakeSpan(pieces));
      size_t size = 0;
      for (size_t i = 0; i < count; ++i) {
        bytes.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
        size += pieces[i].iov_len;
      }
      http2_.Wrote(size);
      http2_.BeginWriting();
    }
    std::vector<Sent> frames;
    for (absl::string_view left = bytes; left.size() >= Http2::kFrameHead;) {
      const auto byte = [&](size_t i) { return static_cast<uint8_t>(left[i]); };
      const size_t length = size_t{byte(0)} << 16 | byte(1) << 8 | byte(2);
      const auto id = static_cast<int32_t>(byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8));
      frames.push_back({byte(3), byte(4), id, std::string(left.substr(9, length))});
      left.remove_prefix(Http2::kFrameHead + length);
    }
    return frames;
  }
  // The error codes of frames of a type.
  std::vector<int> Errors(uint8_t type) {
    std::vector<int> codes;
    for (const Sent& frame : Written()) {
      if (frame.type == type) codes.push_back(frame.payload[type == kGoAwayFrame ? 7 : 3]);
    }
    return codes;
  }
  TestStream& stream(int32_t id) { return *streams_.at(id); }

  FrameCredit credit_{FrameCredit::Clock::time_point()};
  Http2 http2_{*this, credit_};
  std::map<int32_t, std::unique_ptr<TestStream>> streams_;
  std::vector<std::string> paths_;
  std::string events_;
  int outputs_ = 0;

 private:
  void OnRequest(int32_t id, Head&& head) override {
    paths_.push_back(head.path());
    if (const int error = head.HttpError(); error != 0) {
      return http2_.RefuseHttp(id, error, head.is_head());
    }
    auto& stream = streams_[id];
    stream = std::make_unique<TestStream>(http2_, id);
    http2_.Attach(id, *stream);
  }
  bool Keeps(absl::string_view name) const override { return name == "kept"; }
  size_t calls() const override { return streams_.size(); }
  void OnSettings() override { events_ += "settings;"; }
  void OnPong() override { events_ += "pong;"; }
  void OnBroken(bool by_headers) override { events_ += by_headers ? "headers;" : "broken;"; }
  void OnOutput() override { ++outputs_; }
};

TEST_F(Http2Test, ACallsFramesGoToItsStream) {
  Feed(CallHead(1, "/a/B") + Data(1, "abc") + Data(1, "d", false, 5) + Data(1, "e", true));
  EXPECT_EQ(paths_, std::vector<std::string>{"/a/B"});
  EXPECT_EQ(stream(1).data, "abcde");
  EXPECT_EQ(stream(1).events, "frame 3;frame 7;padding 990;frame 1;end;");
  Feed(CallHead(3, "/a/C", true) + Headers(5, CallFields("/a/D")) + Headers(5, {{"a", "b"}}, true));
  EXPECT_EQ(stream(3).events, "end;");
  EXPECT_EQ(stream(5).events, "end;") << "trailers end it as well";
}

TEST_F(Http2Test, AFrameIsKnownWhenItsHeadIsHere) {
  const std::string bytes = CallHead(1, "/a/B") + Data(1, std::string(100, 'x'));
  Feed(bytes.substr(0, bytes.size() - 60));
  EXPECT_EQ(http2_.frame_stream(), &stream(1));
  EXPECT_EQ(http2_.frame_left(), 60U);
  Feed(std::string(60, 'x') + Data(1, "abc", false, 5).substr(0, 11));
  EXPECT_EQ(http2_.frame_left(), 0U) << "it is padded";
  http2_.Detach(1);
  EXPECT_EQ(http2_.frame_stream(), nullptr);
}

TEST_F(Http2Test, SendsWhatTheStreamOffers) {
  Feed(WindowUpdate(0, 1 << 20) + CallHead(1, "/a/B", true) + WindowUpdate(1, 1 << 20));
  TestStream& one = stream(1);
  one.out = Pattern(1, 300'000);
  http2_.SendHeaders(1, one, {{"a", "b"}}, Encoding::kGzip);
  EXPECT_EQ(outputs_, 1);
  std::string data;
  for (const Sent& frame : Written()) {
    if (frame.type != kDataFrame) continue;
    EXPECT_LE(frame.payload.size(), 16'384U);
    data += frame.payload;
  }
  EXPECT_TRUE(data == one.out);
  EXPECT_EQ(one.sent, one.out.size());
  one.out += "more";
  EXPECT_TRUE(Written().empty()) << "the stream has said that there is nothing";
  one.finishes = true;
  http2_.Resume(1);
  const std::vector<Sent> frames = Written();
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].payload, "more");
  EXPECT_EQ(frames[1].type, kHeadersFrame);
  EXPECT_EQ(frames[1].flags & kEndStream, kEndStream);
  EXPECT_EQ(one.events, "end;sent;closed;");
}

TEST_F(Http2Test, FramesAreAsLargeAsThePeerTakes) {
  for (const uint32_t size : {16'384, 20'000, 65'536, 1'000'000}) {
    const auto id = static_cast<int32_t>(size % 3 * 2 + 1 + 6 * streams_.size());
    Feed(Settings({{4, 1 << 20}, {5, size}}) + WindowUpdate(0, 1 << 20) + CallHead(id, "/a/B"));
    stream(id).out = std::string(200'000, 'x');
    http2_.SendHeaders(id, stream(id), {}, Encoding::kIdentity);
    size_t most = 0;
    for (const Sent& frame : Written()) most = std::max(most, frame.payload.size());
    EXPECT_EQ(most, std::min<size_t>(size, 65'536));
  }
}

TEST_F(Http2Test, MakesNoMoreThanIsWritten) {
  Feed(Settings({{4, 1 << 30}}) + WindowUpdate(0, 1 << 30) + CallHead(1, "/a/B"));
  TestStream& one = stream(1);
  one.out = std::string(4 << 20, 'x');
  http2_.SendHeaders(1, one, {}, Encoding::kIdentity);
  EXPECT_TRUE(http2_.Fill());
  std::array<iovec, 500> pieces;
  size_t made = 0;
  for (size_t i = http2_.Pieces(absl::MakeSpan(pieces)); i-- > 0;) made += pieces[i].iov_len;
  EXPECT_GE(made, Http2::kPullBytes);
  EXPECT_LE(made, Http2::kPullBytes + 65'536);
  Written();
  // Parts that are computed are counted.
  one.makes = true;
  one.out += std::string(4 << 20, 'y');
  http2_.Resume(1);
  EXPECT_TRUE(http2_.Fill());
  EXPECT_TRUE(http2_.made_enough());
}

TEST_F(Http2Test, ABrokenRuleEndsTheConnectionOnce) {
  const std::vector<std::string> broken = {
      Data(103, "no such stream"),
      Frame(kHeadersFrame, kEndHeaders, 103, "\xFF\xFF\xFF\xFF\xFF\xFF"),
      Frame(kPingFrame, 0, 0, "short"),
      Frame(kSettingsFrame, 0, 0, "12345"),
      WindowUpdate(0, 0),
      Frame(kDataFrame, kPadded, 101, "\xFFtoo little"),
      Frame(kContinuationFrame, 0, 1, ""),
      BigEndian(0xFFFFFF, 3) + std::string(6, '\0'),
      WindowUpdate(0, 0x7FFFFFFF) + WindowUpdate(0, 0x7FFFFFFF),
      CallHead(2, "/t/Echo/a"),
      Data(101, "", true) + Data(101, "more"),
      Data(101, "", true) + CallHead(101, "/t/Echo/a"),
      CallHead(109, "/t/Echo/a") + CallHead(105, "/t/Echo/b"),
      Frame(kGoAwayFrame, 0, 0, std::string(100'000, '\0')).substr(0, 50),
      Frame(kHeadersFrame, 0, 103, "") + Frame(kPingFrame, 0, 0, "12345678"),
  };
  for (size_t i = 0; i < broken.size(); ++i) {
    events_.clear();
    Http2 http2(*this, credit_);
    ASSERT_TRUE(http2.Begin(10, 1'000));
    const std::string bytes = kPreface + Settings({}) + CallHead(101, "/a/B") + broken[i];
    TestStream stream(http2, 101);
    const auto fed = http2.Feed(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    if (fed == Http2::Fed::kBroken) continue;
    while (http2.Fill() && !http2.empty()) {
      std::array<iovec, 1> piece;
      http2.Pieces(absl::MakeSpan(piece));
      http2.Wrote(piece[0].iov_len);
    }
    EXPECT_TRUE(http2.over()) << i;
    EXPECT_EQ(events_, "settings;broken;") << i;
  }
}

TEST_F(Http2Test, AnotherProtocolIsKnown) {
  Http2 http2(*this, credit_);
  ASSERT_TRUE(http2.Begin(10, 1'000));
  const std::string bytes = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
  EXPECT_EQ(http2.Feed(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()),
            Http2::Fed::kNotHttp2);
}

// A client may send DATA for a call that it has reset: the connection's other calls go on.
TEST_F(Http2Test, WhatComesAfterAResetIsAnErrorOfItsStreamAlone) {
  Feed(CallHead(1, "/a/B") + Rst(1) + Data(1, "more") + Data(1, "", true));
  EXPECT_EQ(Errors(kRstFrame), std::vector<int>{NGHTTP2_STREAM_CLOSED});
  EXPECT_EQ(stream(1).events, "closed;");
  Feed(CallHead(3, "/a/B") + Rst(3) + Headers(3, {{"trailer", "x"}}, true));
  EXPECT_EQ(Errors(kRstFrame), std::vector<int>{NGHTTP2_STREAM_CLOSED});
  EXPECT_TRUE(http2_.wants_input());
}

TEST_F(Http2Test, WhoIsAnsweredBeforeItsEndIsToldToStop) {
  Feed(CallHead(1, "/a/B"));
  http2_.SendTrailersOnly(1, {});
  const std::vector<Sent> frames = Written();
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].type, kHeadersFrame);
  EXPECT_EQ(frames[1].type, kRstFrame);
  EXPECT_EQ(frames[1].payload, BigEndian(0, 4));
  EXPECT_EQ(stream(1).events, "sent;closed;");
  EXPECT_EQ(Feed(Data(1, "late") + Data(1, "later", true) + Rst(1)), Http2::Fed::kOk);
  EXPECT_TRUE(http2_.wants_input());
}

TEST_F(Http2Test, MoreHeadersThanAreReadEndTheConnection) {
  const Fields many(500, {"name", std::string(40, 'x')});
  Feed(Headers(1, many));
  EXPECT_EQ(events_, "settings;settings;headers;");
  EXPECT_EQ(Errors(kGoAwayFrame), std::vector<int>{NGHTTP2_ENHANCE_YOUR_CALM});
  EXPECT_TRUE(paths_.empty());
  Feed(CallHead(3, "/a/B"));
  EXPECT_TRUE(paths_.empty()) << "the rest is ignored";
}

TEST_F(Http2Test, ABlockThatDoesNotEndEndsTheConnection) {
  Feed(Frame(kHeadersFrame, 0, 1, std::string(16'000, '\x82')));
  for (int i = 0; i < 3; ++i) Feed(Frame(kContinuationFrame, 0, 1, std::string(16'000, '\x82')));
  EXPECT_EQ(events_, "settings;settings;headers;");
}

TEST_F(Http2Test, ARefusalWaitsForItsWindowAndCanBeReset) {
  Fields no_post = CallFields("/a/B");
  no_post[0].second = "GET";
  Feed(Settings({{4, 0}}) + Headers(1, no_post, true) + Headers(3, no_post, true));
  Written();
  EXPECT_EQ(http2_.refusals(), 2U);
  Feed(WindowUpdate(3, 256));
  EXPECT_EQ(Written().size(), 1U);
  EXPECT_EQ(http2_.refusals(), 1U);
  http2_.ResetRefusals();
  EXPECT_EQ(Errors(kRstFrame), std::vector<int>{NGHTTP2_CANCEL});
  EXPECT_EQ(http2_.refusals(), 0U);
}

// What frames cost: see FrameCredit.
TEST_F(Http2Test, UselessFramesCostCredit) {
  const auto cost = [this](const std::string& bytes) {
    FrameCredit before = credit_;
    Feed(bytes);
    Written();
    // The least that must be spent more, so that none is left.
    const auto left = [](FrameCredit credit) {
      double spent = 0;
      for (; !credit.spent(); spent += 0.125) credit.Spend(0.125);
      return spent;
    };
    return left(before) - left(credit_);
  };
  EXPECT_NEAR(cost(Ping(1)), 1, 0.2);
  EXPECT_NEAR(cost(Frame(kPriorityFrame, 0, 3, BigEndian(0, 5))), 1, 0.2);
  EXPECT_NEAR(cost(Settings({{4, 1'000}})), 2, 0.2);
  EXPECT_NEAR(cost(CallHead(1, "/a/B")), 1.2, 0.3);
  EXPECT_NEAR(cost(Data(1, "x")), 1, 0.2);
  EXPECT_NEAR(cost(Data(1, std::string(64, 'x'))), 0, 0.2);
  EXPECT_NEAR(cost(Data(1, "", true)), 0, 0.2);
  EXPECT_NEAR(cost(CallHead(3, "/a/B") + Rst(3)), 2.2, 0.3);
}

}  // namespace
}  // namespace http2_test
}  // namespace quantd::transport
