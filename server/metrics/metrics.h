// All metrics of quantd. Most series exist from the start, with value 0; elements by type and codes
// of clients' errors appear on first use. No label has a value that a client can choose: unknown
// methods, for example, are not counted.
//
//   metrics.method(Method::kQuantize).started.Add(1);
//   metrics.operation(Method::kQuantize).kernel_seconds.Observe(elapsed);
//   std::string page = metrics.Text();
#ifndef QUANTD_SERVER_METRICS_METRICS_H_
#define QUANTD_SERVER_METRICS_METRICS_H_

#include <prometheus/client_metric.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "quantd/data_type.h"
#include "server/wire/call_status.h"
#include "server/wire/method.h"

namespace quantd::metrics {

using wire::Method;

// Why a request was rejected before any work: the reason in its error (errors/reason.h), and the
// label's value.
struct Rejection {
  absl::string_view reason;
  absl::string_view label;
};
inline constexpr std::array<Rejection, 11> kRejections = {{
    {"QUEUE_FULL", "queue_full"},
    {"QUEUE_TIMEOUT", "queue_timeout"},
    {"OVER_MEMORY_BUDGET", "over_budget"},
    {"RECEIVING_FULL", "receiving_full"},
    {"MESSAGE_TOO_LARGE", "message_too_large"},
    {"ANSWER_TOO_LARGE", "answer_too_large"},
    {"TOO_MANY_CALLS", "too_many_calls"},
    {"PEER_SHARE", "peer_share"},
    {"UPLOAD_STALLED", "upload_stalled"},
    {"DRAINING", "draining"},
    {"UNAUTHENTICATED", "unauthenticated"},
}};

// Why the server ended or refused a connection; in the order of transport::ConnectionEnd.
inline constexpr std::array<absl::string_view, 9> kConnectionEnds = {
    "too_many", "no_handshake", "protocol_error", "silent", "stalled",
    "age",      "tls",          "unread",         "headers"};

// Why a TLS handshake failed; in the order of access::Refusal.
inline constexpr std::array<absl::string_view, 5> kHandshakeRefusals = {
    "plain_text", "no_certificate", "certificate", "protocol", "client"};

// What is reloaded when its files change.
inline constexpr std::array<absl::string_view, 2> kReloads = {"certificates", "tokens"};

// What was done against peers that take more than their share. All but the last are in the order of
// transport::AbuseAction.
inline constexpr std::array<absl::string_view, 8> kGuardActions = {
    "connection_refused",    "connection_evicted", "connection_throttled", "call_evicted",
    "descriptors_exhausted", "upload_stalled",     "answer_stalled",       "region_damaged"};

// Why a log line was not written (log::Lost), or a span was not written to --trace_file.
inline constexpr std::array<absl::string_view, 3> kLogLosses = {"repeated", "full", "failed"};
inline constexpr std::array<absl::string_view, 2> kSpanLosses = {"full", "failed"};

// Counters and histograms of seconds. Writing takes one or two relaxed atomic additions and no lock
// (prometheus-cpp's Histogram::Observe takes a mutex). Thread-safe.
class Counter {
 public:
  void Add(uint64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// 10 us to 100 s in steps of 1, 2.5, 5.
class Histogram {
 public:
  using Duration = std::chrono::nanoseconds;

  void Observe(Duration duration) {
    const int64_t nanoseconds = std::max<int64_t>(duration.count(), 0);
    const auto* bound = std::lower_bound(kBounds.begin(), kBounds.end(), nanoseconds);
    counts_[static_cast<size_t>(bound - kBounds.begin())].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(nanoseconds, std::memory_order_relaxed);
  }

  // A reading during writes may be slightly out of date, but is consistent: the count is the sum of
  // the buckets.
  prometheus::ClientMetric::Histogram Collect() const {
    prometheus::ClientMetric::Histogram out;
    for (size_t i = 0; i < counts_.size(); ++i) {
      out.sample_count += counts_[i].load(std::memory_order_relaxed);
      prometheus::ClientMetric::Bucket bucket;
      bucket.cumulative_count = out.sample_count;
      bucket.upper_bound =
          i < kBounds.size() ? kBounds[i] / 1e9 : std::numeric_limits<double>::infinity();
      out.bucket.push_back(bucket);
    }
    out.sample_sum = sum_.load(std::memory_order_relaxed) / 1e9;
    return out;
  }

 private:
  static constexpr std::array<int64_t, 22> kBounds = [] {
    std::array<int64_t, 22> bounds{};
    int64_t decade = 10'000;
    for (size_t i = 0; i < bounds.size(); ++i) {
      constexpr int64_t kTenths[] = {10, 25, 50};
      bounds[i] = decade / 10 * kTenths[i % 3];
      if (i % 3 == 2) decade *= 10;
    }
    return bounds;
  }();

  std::array<std::atomic<uint64_t>, kBounds.size() + 1> counts_{};
  std::atomic<int64_t> sum_{0};
};

inline constexpr size_t kCodes = wire::kCallCodes;

struct MethodMetrics {
  Counter started;
  Counter received;  // messages
  Counter sent;      // messages
  std::array<Counter, kCodes> handled;
  Histogram handling_seconds;
};

struct OperationMetrics {
  // By input and output type: indices into quantd::kDataTypes. Pairs that are 0 are not shown.
  std::array<std::array<Counter, kDataTypes.size()>, kDataTypes.size()> elements;
  Counter bytes_in;
  Counter bytes_out;
  Histogram kernel_seconds;
};

// The label grpc_code.
absl::string_view CodeName(size_t code);

// Values that other components count, read when the page is made.
struct Readings {
  double inflight_requests = 0;
  double inflight_bytes = 0;
  std::array<double, 3> waiting{};  // to be received, for memory, for a core
  double receiving_bytes = 0;
  double pool_bytes = 0;
  double regions = 0;
  double region_bytes = 0;
  double busy_cores = 0;
  double cores = 0;
  double calls = 0;
  double connections = 0;
  double connections_accepted = 0;
  std::array<double, kConnectionEnds.size()> connections_ended{};
  std::array<double, kHandshakeRefusals.size()> handshakes_refused{};
  double certificate_expires = 0;  // seconds since 1970; 0: no certificate
  double connections_throttled = 0;
  double answers_stalled = 0;
  double draining = 0;
  std::array<double, kGuardActions.size()> guard_actions{};
  double log_lines = 0;
  std::array<double, kLogLosses.size()> log_lost{};
  double spans_exported = 0;
  std::array<double, kSpanLosses.size()> spans_dropped{};
  // The maximum of some of these.
  double memory_limit_bytes = 0;
  double memory_budget_bytes = 0;
  double receive_budget_bytes = 0;
  double max_connections = 0;
};

class Page;

// Thread-safe.
class Metrics {
 public:
  // Labels of quantd_build_info.
  struct Build {
    std::string version;
    std::string target;  // the instruction set in use
    std::string http2;   // the library, with its version
  };
  // `read` is called by the thread that asks for the page.
  Metrics(Build build, std::function<Readings()> read);

  MethodMetrics& method(Method method) { return methods_[static_cast<size_t>(method)]; }
  const MethodMetrics& method(Method method) const { return methods_[static_cast<size_t>(method)]; }
  // REQUIRES: `method` is an operation.
  OperationMetrics& operation(Method method) { return operations_[wire::OperationIndex(method)]; }
  const OperationMetrics& operation(Method method) const {
    return operations_[wire::OperationIndex(method)];
  }
  // Counts a rejection if `reason` is in kRejections.
  void CountRejection(absl::string_view reason);
  Histogram& queue_seconds() { return queue_seconds_; }
  const Histogram& queue_seconds() const { return queue_seconds_; }
  Counter& saturated_elements() { return saturated_elements_; }
  // The time of compressing responses, whether or not they got smaller.
  Histogram& compression_seconds() { return compression_seconds_; }
  // Counts a response that is sent compressed: with gzip, or with deflate.
  void CountCompressed(bool gzip, uint64_t bytes_in, uint64_t bytes_out) {
    compressed_answers_[gzip ? 0 : 1].Add(1);
    compressed_bytes_in_.Add(bytes_in);
    compressed_bytes_out_.Add(bytes_out);
  }
  // `what` is an index into kReloads.
  void CountReload(size_t what, bool ok) { reloads_[what][ok ? 0 : 1].Add(1); }

  // Counts a finished operation.
  void CountElements(Method method, DataType input, DataType output, int64_t elements);

  // Counts a call that has ended.
  void CountCall(Method method, absl::StatusCode code, Histogram::Duration time);
  // Counts that `cores` cores have computed for `time`.
  void CountComputing(int cores, Histogram::Duration time) {
    busy_core_nanoseconds_.Add(static_cast<uint64_t>(cores) *
                               static_cast<uint64_t>(std::max<int64_t>(time.count(), 0)));
  }

  // What others count, as it is now.
  Readings Read() const { return read_(); }
  // The page in Prometheus' text format.
  std::string Text() const;
  // The counts of kRejections.
  std::array<uint64_t, kRejections.size()> rejections() const;

 private:
  Page MakePage() const;
  void AddCompression(Page& page) const;

  const Build build_;
  const std::function<Readings()> read_;
  std::array<MethodMetrics, wire::kMethods.size()> methods_;
  std::array<OperationMetrics, wire::kOperations> operations_;
  std::array<Counter, kRejections.size()> rejected_;
  Histogram queue_seconds_;
  std::array<Counter, 2> compressed_answers_;  // gzip, deflate
  Counter compressed_bytes_in_, compressed_bytes_out_;
  Histogram compression_seconds_;
  Counter busy_core_nanoseconds_;
  Counter saturated_elements_;
  std::array<std::array<Counter, 2>, kReloads.size()> reloads_;  // ok, refused
};

}  // namespace quantd::metrics

#endif  // QUANTD_SERVER_METRICS_METRICS_H_
