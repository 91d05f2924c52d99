// Which calls are traced, and the lines of their spans.
#include "server/trace/tracer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace quantd::trace {
namespace {

using nlohmann::json;

class TracerTest : public ::testing::Test {
 protected:
  TracerTest() : path_(testing::TempDir() + "spans-" + std::to_string(getpid())) {}
  ~TracerTest() override { unlink(path_.c_str()); }

  std::unique_ptr<Tracer> Open(double ratio = 0) const {
    auto tracer = Tracer::Open(path_, ratio, "1.2.3");
    EXPECT_TRUE(tracer.ok()) << tracer.status();
    return *std::move(tracer);
  }
  std::vector<json> Lines() const {
    std::ifstream file(path_);
    std::vector<json> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
    return lines;
  }

  const std::string path_;
};

TEST_F(TracerTest, ParentsDecideAndTheRatioDecidesForRoots) {
  Context sampled, unsampled;
  sampled.trace_id.fill(0xab);
  sampled.sampled = true;
  unsampled.trace_id.fill(0xab);
  for (const double ratio : {0.0, 1.0}) {
    const auto tracer = Open(ratio);
    const auto child = tracer->Begin(sampled);
    ASSERT_TRUE(child.has_value());
    EXPECT_EQ(child->trace_id, sampled.trace_id);
    EXPECT_NE(child->span_id, SpanId{});
    EXPECT_FALSE(tracer->Begin(unsampled).has_value());
    EXPECT_EQ(tracer->Begin(std::nullopt).has_value(), ratio == 1);
  }
  const auto tracer = Open(0.25);
  int roots = 0;
  for (int i = 0; i < 10'000; ++i) roots += tracer->Begin(std::nullopt).has_value() ? 1 : 0;
  EXPECT_NEAR(roots, 2500, 500);  // more than ten standard deviations
}

TEST_F(TracerTest, ALineHasEveryField) {
  Span span;
  span.trace_id.fill(0xab);
  span.span_id.fill(0xcd);
  span.parent_id.fill(0xef);
  span.name = "service/Method";
  span.begin = 1'700'000'000'123'456'789;
  span.end = span.begin + 5;
  span.failed = true;
  span.attributes = {{"text", "a\"\\\n\xff\xc3\xa9"}, {"number", int64_t{-7}}};
  span.events = {{"decoded", span.begin + 1}};
  const auto tracer = Open();
  tracer->Write(span);
  tracer->Write(Span());
  tracer->Close(std::chrono::seconds(60));
  EXPECT_EQ(tracer->written(), 2U);
  const std::vector<json> lines = Lines();
  ASSERT_EQ(lines.size(), 2U);
  const json& of = lines[0]["resourceSpans"][0];
  EXPECT_EQ(of["resource"]["attributes"][0],
            json({{"key", "service.name"}, {"value", {{"stringValue", "quantd"}}}}));
  EXPECT_EQ(of["resource"]["attributes"][3]["value"]["intValue"], std::to_string(getpid()));
  EXPECT_EQ(of["scopeSpans"][0]["scope"], json({{"name", "quantd"}, {"version", "1.2.3"}}));
  EXPECT_EQ(of["scopeSpans"][0]["spans"], json::parse(R"([{
      "traceId": "abababababababababababababababab", "spanId": "cdcdcdcdcdcdcdcd",
      "parentSpanId": "efefefefefefefef", "name": "service/Method", "kind": 2,
      "startTimeUnixNano": "1700000000123456789", "endTimeUnixNano": "1700000000123456794",
      "attributes": [{"key": "text", "value": {"stringValue": "a\"\\\n\ufffd\u00e9"}},
                     {"key": "number", "value": {"intValue": "-7"}}],
      "events": [{"timeUnixNano": "1700000000123456790", "name": "decoded"}],
      "status": {"code": 2}}])"));
  // A root without an error.
  const json root = lines[1]["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
  EXPECT_FALSE(root.contains("parentSpanId"));
  EXPECT_FALSE(root.contains("status"));
}

TEST_F(TracerTest, AFileIsAppendedTo) {
  for (int i = 0; i < 2; ++i) {
    const auto tracer = Open();
    tracer->Write(Span());
    tracer->Close(std::chrono::seconds(60));
  }
  EXPECT_EQ(Lines().size(), 2U);
}

TEST_F(TracerTest, AFileThatCannotBeWrittenIsAnErrorAndAPipeWithoutReaderIsNotWaitedFor) {
  for (const std::string& path : {path_ + "/x", testing::TempDir()}) {
    const absl::Status status = Tracer::Open(path, 0, "").status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << path;
    EXPECT_NE(status.message().find("--trace_file"), status.message().npos);
  }
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(Tracer::Open(path_, 0, "").ok());
}

TEST_F(TracerTest, SpansThatAreLostAreCountedAndNobodyWaits) {
  const auto full = Tracer::Open("/dev/full", 0, "");
  ASSERT_TRUE(full.ok());
  (*full)->Write(Span());
  (*full)->Close(std::chrono::seconds(60));
  EXPECT_EQ((*full)->failed(), 1U);
  // A pipe that nobody reads.
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  {
    const auto tracer = Open();
    constexpr uint64_t kSpans = 4 * Tracer::kMostWaiting;
    for (uint64_t i = 0; i < kSpans; ++i) tracer->Write(Span());
    tracer->Close(std::chrono::milliseconds(10));
    EXPECT_GT(tracer->dropped(), kSpans / 2);
    EXPECT_GT(tracer->failed(), 0U);
    EXPECT_EQ(tracer->written() + tracer->dropped() + tracer->failed(), kSpans);
  }
  close(reader);
}

}  // namespace
}  // namespace quantd::trace
