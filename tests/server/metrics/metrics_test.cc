// The histogram's buckets, and the page with all that was counted.
#include "server/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <ctime>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/metrics/process.h"
#include "server/wire/method.h"

namespace quantd::metrics {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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
  histogram.Observe(nanoseconds(-5));  // the clock went back
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

Readings Now() {
  Readings now;
  now.inflight_requests = 3;
  now.inflight_bytes = 4e9;
  now.waiting = {1, 2, 2};
  now.receiving_bytes = 6;
  now.pool_bytes = 7;
  now.regions = 16;
  now.region_bytes = 17;
  now.busy_cores = 8;
  now.cores = 9;
  now.calls = 10;
  now.connections = 11;
  now.connections_accepted = 12;
  for (size_t i = 0; i < kConnectionEnds.size(); ++i) {
    now.connections_ended[i] = 20 + static_cast<double>(i);
  }
  now.connections_throttled = 13;
  now.answers_stalled = 14;
  now.draining = 1;
  for (size_t i = 0; i < kGuardActions.size(); ++i) {
    now.guard_actions[i] = 40 + static_cast<double>(i);
  }
  now.log_lines = 50;
  now.log_lost = {51, 52, 53};
  now.spans_exported = 54;
  now.spans_dropped = {55, 56};
  now.certificate_expires = 60;
  for (size_t i = 0; i < kHandshakeRefusals.size(); ++i) {
    now.handshakes_refused[i] = 70 + static_cast<double>(i);
  }
  now.memory_limit_bytes = 30;
  now.memory_budget_bytes = 31;
  now.receive_budget_bytes = 32;
  now.max_connections = 33;
  return now;
}

const Metrics::Build kBuild = {"1.2.3", "avx2", "nghttp2 1.52.0"};

std::vector<std::string> Lines(const std::string& page) { return absl::StrSplit(page, '\n'); }

TEST(Metrics, ShowsWhatAlertsReadFromTheStartAndTheRestOnFirstUse) {
  const auto handled = [](const char* code) {
    return absl::StrCat(
        "grpc_server_handled_total{grpc_type=\"unary\",grpc_service=\"quantd.v1."
        "QuantizationService\",grpc_method=\"GetServerInfo\",grpc_code=\"",
        code, "\"}");
  };
  Metrics metrics(kBuild, Now);
  const std::string fresh = metrics.Text();
  for (const std::string& series : {handled("OK"), handled("Canceled"), handled("DeadlineExceeded"),
                                    handled("Internal"), handled("Unknown"), handled("DataLoss"),
                                    std::string("quantd_rejected_total{reason=\"queue_full\"}")}) {
    EXPECT_THAT(Lines(fresh), Contains(series + " 0"));
  }
  EXPECT_THAT(Lines(fresh), Contains("quantd_build_info{version=\"1.2.3\",target=\"avx2\","
                                     "http2=\"nghttp2 1.52.0\"} 1"));
  EXPECT_THAT(fresh, Not(HasSubstr("Unauthenticated")));
  EXPECT_THAT(fresh, Not(HasSubstr("quantd_elements_total{")));
  metrics.CountCall(Method::kGetServerInfo, absl::StatusCode::kUnauthenticated, seconds(1));
  EXPECT_THAT(Lines(metrics.Text()), Contains(handled("Unauthenticated") + " 1"));
}

TEST(Metrics, CoresCountTheirTime) {
  Metrics metrics(kBuild, Now);
  metrics.CountComputing(1, std::chrono::milliseconds(250));
  metrics.CountComputing(4, std::chrono::milliseconds(500));
  metrics.CountComputing(1, seconds(-1));  // the clock went back
  EXPECT_THAT(Lines(metrics.Text()), Contains("quantd_busy_core_seconds_total 2.25"));
}

TEST(Metrics, ShowsWhatOthersCount) {
  const std::string text = Metrics(kBuild, Now).Text();
  for (const char* series : {"quantd_inflight_requests 3",
                             "quantd_inflight_bytes 4000000000",
                             "quantd_queued_requests 5",
                             "quantd_receiving_bytes 6",
                             "quantd_pool_bytes 7",
                             "quantd_regions 16",
                             "quantd_region_bytes 17",
                             "quantd_busy_cores 8",
                             "quantd_cores 9",
                             "quantd_calls 10",
                             "quantd_connections 11",
                             "quantd_connections_accepted_total 12",
                             "quantd_connections_throttled_total 13",
                             "quantd_answers_stalled_total 14",
                             "quantd_draining 1",
                             "quantd_guard_actions_total{action=\"connection_refused\"} 40",
                             "quantd_guard_actions_total{action=\"region_damaged\"} 47",
                             "quantd_log_lines_total 50",
                             "quantd_log_lost_total{reason=\"repeated\"} 51",
                             "quantd_log_lost_total{reason=\"failed\"} 53",
                             "quantd_spans_exported_total 54",
                             "quantd_spans_dropped_total{reason=\"full\"} 55",
                             "quantd_spans_dropped_total{reason=\"failed\"} 56",
                             "quantd_memory_limit_bytes 30",
                             "quantd_memory_budget_bytes 31",
                             "quantd_receive_budget_bytes 32",
                             "quantd_max_connections 33",
                             "quantd_tls_certificate_expires_seconds 60",
                             R"(quantd_tls_handshakes_refused_total{reason="plain_text"} 70)",
                             R"(quantd_connections_ended_total{reason="too_many"} 20)",
                             R"(quantd_connections_ended_total{reason="age"} 25)"}) {
    EXPECT_THAT(Lines(text), Contains(series));
  }
}

TEST(Metrics, CountFromZero) {
  for (const std::string& line : Lines(Metrics(kBuild, [] { return Readings(); }).Text())) {
    const bool counts = absl::StartsWith(line, "grpc_") || absl::StartsWith(line, "quantd_");
    if (!counts || absl::StartsWith(line, "quantd_build_info")) continue;
    EXPECT_THAT(line, EndsWith(" 0"));
  }
}

// The readings are taken once for each page, so that its numbers belong together.
TEST(Metrics, AsksOnceForAPage) {
  int asked = 0;
  const Metrics metrics(kBuild, [&asked] {
    Readings now;
    now.calls = ++asked;
    return now;
  });
  EXPECT_THAT(Lines(metrics.Text()), Contains("quantd_calls 1"));
  EXPECT_THAT(Lines(metrics.Text()), Contains("quantd_calls 2"));
  EXPECT_EQ(asked, 2);
}

TEST(Metrics, CountsWhereItIsTold) {
  Metrics metrics(kBuild, Now);
  metrics.method(Method::kStream).handled[13].Add(2);
  metrics.CountElements(Method::kDynamicQuantize, DataType::kBfloat16, DataType::kFloat8E5M2,
                        1'000'000'000'000);
  metrics.operation(Method::kDynamicQuantize).bytes_out.Add(7);
  metrics.saturated_elements().Add(9);
  metrics.queue_seconds().Observe(microseconds(30));
  metrics.compression_seconds().Observe(microseconds(30));
  for (const bool gzip : {true, false, false}) metrics.CountCompressed(gzip, 100, 10);
  for (const bool ok : {true, false, false}) metrics.CountReload(0, ok);
  for (const bool ok : {true, true, true, false}) metrics.CountReload(1, ok);
  const std::vector<std::string> lines = Lines(metrics.Text());
  for (
      const char* series :
      {R"(grpc_server_handled_total{grpc_type="bidi_stream",grpc_service="quantd.v1.QuantizationService",grpc_method="Stream",grpc_code="Internal"} 2)",
       R"(quantd_elements_total{operation="dynamic_quantize",input_type="BFLOAT16",output_type="FLOAT8E5M2"} 1000000000000)",
       R"(quantd_tensor_bytes_total{operation="dynamic_quantize",direction="out"} 7)",
       "quantd_saturated_elements_total 9", R"(quantd_queue_seconds_bucket{le="2.5e-05"} 0)",
       R"(quantd_queue_seconds_bucket{le="5e-05"} 1)", "quantd_compression_seconds_count 1",
       R"(quantd_compressed_answers_total{encoding="gzip"} 1)",
       R"(quantd_compressed_answers_total{encoding="deflate"} 2)",
       R"(quantd_compressed_bytes_total{direction="in"} 300)",
       R"(quantd_compressed_bytes_total{direction="out"} 30)",
       R"(quantd_reloads_total{what="certificates",result="ok"} 1)",
       R"(quantd_reloads_total{what="certificates",result="refused"} 2)",
       R"(quantd_reloads_total{what="tokens",result="ok"} 3)",
       R"(quantd_reloads_total{what="tokens",result="refused"} 1)"}) {
    EXPECT_THAT(lines, Contains(series));
  }
}

// Metrics use wire's table of methods: each of its rows is in each family.
TEST(Metrics, EveryMethodIsCountedByItself) {
  Metrics metrics(kBuild, Now);
  uint64_t n = 0;
  for (const wire::MethodInfo& info : wire::kMethods) {
    metrics.method(info.method).started.Add(++n);
    metrics.method(info.method).received.Add(100 + n);
    metrics.method(info.method).sent.Add(200 + n);
    metrics.method(info.method).handled[0].Add(300 + n);
    metrics.method(info.method).handling_seconds.Observe(seconds(n));
    if (info.operation.empty()) continue;
    metrics.operation(info.method).bytes_in.Add(400 + n);
    metrics.operation(info.method).bytes_out.Add(500 + n);
    metrics.operation(info.method).kernel_seconds.Observe(seconds(600 + n));
  }
  const std::vector<std::string> lines = Lines(metrics.Text());
  n = 0;
  for (const wire::MethodInfo& info : wire::kMethods) {
    const std::string labels = absl::StrCat("{grpc_type=\"", info.type, "\",grpc_service=\"",
                                            info.service, "\",grpc_method=\"", info.name, "\"");
    ++n;
    EXPECT_THAT(lines, Contains(absl::StrCat("grpc_server_started_total", labels, "} ", n)));
    EXPECT_THAT(lines,
                Contains(absl::StrCat("grpc_server_msg_received_total", labels, "} ", 100 + n)));
    EXPECT_THAT(lines, Contains(absl::StrCat("grpc_server_msg_sent_total", labels, "} ", 200 + n)));
    EXPECT_THAT(lines, Contains(absl::StrCat("grpc_server_handled_total", labels,
                                             ",grpc_code=\"OK\"} ", 300 + n)));
    EXPECT_THAT(lines, Contains(absl::StrCat("grpc_server_handling_seconds_sum", labels, "} ", n)));
    if (info.operation.empty()) continue;
    const std::string operation = absl::StrCat("{operation=\"", info.operation, "\"");
    const std::string bytes = absl::StrCat("quantd_tensor_bytes_total", operation, ",direction=\"");
    EXPECT_THAT(lines, Contains(absl::StrCat(bytes, "in\"} ", 400 + n)));
    EXPECT_THAT(lines, Contains(absl::StrCat(bytes, "out\"} ", 500 + n)));
    EXPECT_THAT(lines,
                Contains(absl::StrCat("quantd_kernel_seconds_sum", operation, "} ", 600 + n)));
  }
}

TEST(Metrics, RejectionsAreCountedByTheirReason) {
  Metrics metrics(kBuild, Now);
  uint64_t n = 0;
  for (const Rejection& rejection : kRejections) {
    ++n;
    for (uint64_t i = 0; i < n; ++i) metrics.CountRejection(rejection.reason);
  }
  // A client's own mistakes are not counted, nor are unknown reasons.
  metrics.CountRejection("INVALID_ARGUMENT");
  metrics.CountRejection("queue_full");
  metrics.CountRejection("");
  const std::vector<std::string> lines = Lines(metrics.Text());
  n = 0;
  for (const Rejection& rejection : kRejections) {
    EXPECT_THAT(lines, Contains(absl::StrCat("quantd_rejected_total{reason=\"", rejection.label,
                                             "\"} ", ++n)));
  }
  EXPECT_THAT(lines, Contains(StartsWith("quantd_rejected_total{")).Times(kRejections.size()));
}

// As at the limit of descriptors, where these figures matter most.
TEST(Process, FiguresDoNotNeedADescriptor) {
  const ProcessStatus before = ReadProcessStatus();
  EXPECT_NEAR(before.start_time_seconds, static_cast<double>(time(nullptr)), 3600);
  EXPECT_GE(before.threads, 1);
  EXPECT_GT(before.open_fds, 2);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit few = limit;
  few.rlim_cur = 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const ProcessStatus now = ReadProcessStatus();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_GE(now.cpu_seconds, before.cpu_seconds);
  EXPECT_EQ(now.start_time_seconds, before.start_time_seconds);
  EXPECT_NEAR(now.cpu_seconds, static_cast<double>(clock()) / CLOCKS_PER_SEC, 1);
  EXPECT_GT(now.resident_bytes, 0);
  EXPECT_GT(now.virtual_bytes, now.resident_bytes);
  EXPECT_EQ(now.max_fds, 3);
  EXPECT_EQ(now.open_fds, 3);
}

}  // namespace
}  // namespace quantd::metrics
