// The histogram's buckets, and the page that is made of what was counted.
#include "server/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace quantd::metrics {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Histogram, BoundsAreTenMicrosecondsToAHundredSeconds) {
  const auto collected = Histogram().Collect();
  ASSERT_EQ(collected.bucket.size(), 23u);
  EXPECT_DOUBLE_EQ(collected.bucket[0].upper_bound, 10e-6);
  EXPECT_DOUBLE_EQ(collected.bucket[1].upper_bound, 25e-6);
  EXPECT_DOUBLE_EQ(collected.bucket[2].upper_bound, 50e-6);
  EXPECT_DOUBLE_EQ(collected.bucket[3].upper_bound, 100e-6);
  EXPECT_DOUBLE_EQ(collected.bucket[21].upper_bound, 100);
  EXPECT_EQ(collected.bucket[22].upper_bound, std::numeric_limits<double>::infinity());
}

TEST(Histogram, AnUpperBoundBelongsToItsBucket) {
  Histogram histogram;
  histogram.Observe(nanoseconds(10'000));
  histogram.Observe(nanoseconds(10'001));
  histogram.Observe(nanoseconds(-5));  // a clock that went back
  histogram.Observe(seconds(100));
  histogram.Observe(seconds(101));
  const auto collected = histogram.Collect();
  EXPECT_EQ(collected.bucket[0].cumulative_count, 2u);
  EXPECT_EQ(collected.bucket[1].cumulative_count, 3u);
  EXPECT_EQ(collected.bucket[21].cumulative_count, 4u);
  EXPECT_EQ(collected.bucket[22].cumulative_count, 5u);
  EXPECT_EQ(collected.sample_count, 5u);
  EXPECT_NEAR(collected.sample_sum, 201.00002, 1e-6);
}

TEST(Histogram, LosesNothingUnderContention) {
  Histogram histogram;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&histogram] {
      for (int i = 0; i < 50'000; ++i) histogram.Observe(microseconds(i % 1000));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.Collect().sample_count, 200'000u);
}

Metrics Make() {
  Gauges gauges;
  gauges.inflight_requests = [] { return 3.0; };
  gauges.inflight_bytes = [] { return 4e9; };
  gauges.pool_bytes = [] { return 5.0; };
  return Metrics("1.2.3", "avx2", gauges);
}

TEST(Metrics, EverySeriesIsThereFromTheStart) {
  const std::string text = Make().Text();
  for (
      const char* series :
      {R"(grpc_server_started_total{grpc_type="unary",grpc_service="quantd.v1.QuantizationService",grpc_method="Dequantize"} 0)",
       R"(grpc_server_msg_sent_total{grpc_type="bidi_stream",grpc_service="quantd.v1.QuantizationService",grpc_method="Stream"} 0)",
       R"(grpc_method="GetServerInfo",grpc_code="Unauthenticated"} 0)",
       R"(quantd_elements_total{operation="quantize",input_type="INT32",output_type="INT2"} 0)",
       R"(quantd_elements_total{operation="dequantize",input_type="FLOAT4E2M1",output_type="BFLOAT16"} 0)",
       R"(quantd_rejected_total{reason="queue_full"} 0)",
       R"(quantd_build_info{version="1.2.3",target="avx2"} 1)", "quantd_inflight_requests 3",
       "quantd_inflight_bytes 4000000000", "quantd_pool_bytes 5"}) {
    EXPECT_THAT(text, HasSubstr(series));
  }
  // No operation has these pairs.
  EXPECT_THAT(text, Not(HasSubstr(R"(output_type="INT32")")));
  EXPECT_THAT(text, Not(HasSubstr(R"(input_type="FLOAT8E8M0")")));
}

TEST(Metrics, CountsWhereItIsTold) {
  Metrics metrics = Make();
  metrics.method(Rpc::kStream).handled[13].Add(2);
  metrics.CountElements(Operation::kDynamicQuantize, DataType::kBfloat16, DataType::kFloat8E5M2,
                        1'000'000'000'000);
  metrics.operation(Operation::kDynamicQuantize).bytes_out.Add(7);
  metrics.rejected(Rejection::kAnswerTooLarge).Add(1);
  metrics.saturated_elements().Add(9);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr(R"(grpc_method="Stream",grpc_code="Internal"} 2)"));
  EXPECT_THAT(
      text,
      HasSubstr(
          R"({operation="dynamic_quantize",input_type="BFLOAT16",output_type="FLOAT8E5M2"} 1000000000000)"));
  EXPECT_THAT(text, HasSubstr(R"({operation="dynamic_quantize",direction="out"} 7)"));
  EXPECT_THAT(text, HasSubstr(R"(quantd_rejected_total{reason="answer_too_large"} 1)"));
  EXPECT_THAT(text, HasSubstr("quantd_saturated_elements_total 9"));
}

}  // namespace
}  // namespace quantd::metrics
