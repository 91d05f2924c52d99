// See metrics.h. Names and labels are those of tests/golden/metrics.txt.
#include "server/metrics/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "server/metrics/process.h"

namespace quantd::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

using Labels = std::vector<ClientMetric::Label>;

ClientMetric::Label Label(absl::string_view name, absl::string_view value) {
  ClientMetric::Label label;
  label.name = std::string(name);
  label.value = std::string(value);
  return label;
}

}  // namespace

// The metrics page: families of series, in Prometheus' text format. Families are shown in the order
// in which they are added.
class Page {
 public:
  // Starts a family: the following series belong to it. A counter's name ends in _total.
  void Start(MetricType type, absl::string_view name, absl::string_view help) {
    prometheus::MetricFamily& family = families_.emplace_back();
    family.name = std::string(name);
    family.help = std::string(help);
    family.type = type;
  }
  void AddCounter(Labels labels, double value) { Add(std::move(labels)).counter.value = value; }
  void AddGauge(Labels labels, double value) { Add(std::move(labels)).gauge.value = value; }
  void AddHistogram(Labels labels, const Histogram& histogram) {
    Add(std::move(labels)).histogram = histogram.Collect();
  }
  // Adds a family with one series without labels.
  void AddOneCounter(absl::string_view name, absl::string_view help, double value) {
    Start(MetricType::Counter, name, help);
    AddCounter({}, value);
  }
  void AddOneGauge(absl::string_view name, absl::string_view help, double value) {
    Start(MetricType::Gauge, name, help);
    AddGauge({}, value);
  }

  // Version 0.0.4 of the format.
  std::string Text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  ClientMetric& Add(Labels labels) {
    ClientMetric& metric = families_.back().metric.emplace_back();
    metric.label = std::move(labels);
    return metric;
  }

  std::vector<prometheus::MetricFamily> families_;
};

namespace {

using wire::kMethods;
using wire::kOperations;
// The names of go-grpc-prometheus, because dashboards and alerts use them.
constexpr absl::string_view kCodeNames[kCodes] = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

// OK, and the codes that the alerts of deploy/monitoring read: rate() does not see the first event
// of a series that begins with it. The others, which are the clients' errors, are shown on first
// use.
bool IsAlwaysShown(size_t code) {
  switch (static_cast<absl::StatusCode>(code)) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

Labels MethodLabels(const wire::MethodInfo& method) {
  return {Label("grpc_type", method.type), Label("grpc_service", method.service),
          Label("grpc_method", method.name)};
}

size_t Index(DataType type) {
  size_t index = 0;
  while (index + 1 < kDataTypes.size() && kDataTypes[index].type != type) ++index;
  return index;
}

using Methods = std::array<MethodMetrics, kMethods.size()>;

void AddCalls(const Methods& methods, Page& page) {
  const auto counter = [&](absl::string_view name, absl::string_view help,
                           Counter MethodMetrics::* member) {
    page.Start(MetricType::Counter, name, help);
    for (size_t i = 0; i < kMethods.size(); ++i) {
      page.AddCounter(MethodLabels(kMethods[i]), (methods[i].*member).value());
    }
  };
  counter("grpc_server_started_total", "Calls that reached the server.", &MethodMetrics::started);
  page.Start(MetricType::Counter, "grpc_server_handled_total", "Finished calls, by status code.");
  for (size_t i = 0; i < kMethods.size(); ++i) {
    for (size_t code = 0; code < kCodes; ++code) {
      const uint64_t count = methods[i].handled[code].value();
      if (count == 0 && !IsAlwaysShown(code)) continue;
      Labels labels = MethodLabels(kMethods[i]);
      labels.push_back(Label("grpc_code", kCodeNames[code]));
      page.AddCounter(std::move(labels), count);
    }
  }
  counter("grpc_server_msg_received_total", "Messages received.", &MethodMetrics::received);
  counter("grpc_server_msg_sent_total", "Messages sent.", &MethodMetrics::sent);
  page.Start(MetricType::Histogram, "grpc_server_handling_seconds",
             "Time from a call's arrival to its end.");
  for (size_t i = 0; i < kMethods.size(); ++i) {
    page.AddHistogram(MethodLabels(kMethods[i]), methods[i].handling_seconds);
  }
}

void AddOperations(const std::array<OperationMetrics, kOperations>& operations, Page& page) {
  page.Start(MetricType::Counter, "quantd_elements_total",
             "Tensor elements quantized or dequantized.");
  for (size_t i = 0; i < kOperations; ++i) {
    for (size_t in = 0; in < kDataTypes.size(); ++in) {
      for (size_t out = 0; out < kDataTypes.size(); ++out) {
        const uint64_t count = operations[i].elements[in][out].value();
        if (count == 0) continue;
        page.AddCounter(
            {Label("operation", kMethods[i].operation), Label("input_type", kDataTypes[in].name),
             Label("output_type", kDataTypes[out].name)},
            count);
      }
    }
  }
  page.Start(MetricType::Counter, "quantd_tensor_bytes_total",
             "Packed bytes of x (in) and of y and its scales (out).");
  for (size_t i = 0; i < kOperations; ++i) {
    page.AddCounter({Label("operation", kMethods[i].operation), Label("direction", "in")},
                    operations[i].bytes_in.value());
    page.AddCounter({Label("operation", kMethods[i].operation), Label("direction", "out")},
                    operations[i].bytes_out.value());
  }
  page.Start(MetricType::Histogram, "quantd_kernel_seconds",
             "Time to execute one operation, from the planned request to the written response.");
  for (size_t i = 0; i < kOperations; ++i) {
    page.AddHistogram({Label("operation", kMethods[i].operation)}, operations[i].kernel_seconds);
  }
}

void AddConnections(const Readings& now, Page& page) {
  page.AddOneGauge("quantd_connections", "Open connections.", now.connections);
  page.AddOneCounter("quantd_connections_accepted_total", "Accepted connections.",
                     now.connections_accepted);
  page.Start(MetricType::Counter, "quantd_connections_ended_total",
             "Connections that the server refused or ended, by reason.");
  for (size_t i = 0; i < kConnectionEnds.size(); ++i) {
    page.AddCounter({Label("reason", kConnectionEnds[i])}, now.connections_ended[i]);
  }
  page.Start(MetricType::Counter, "quantd_tls_handshakes_refused_total",
             "Failed TLS handshakes on the gRPC port, by reason.");
  for (size_t i = 0; i < kHandshakeRefusals.size(); ++i) {
    page.AddCounter({Label("reason", kHandshakeRefusals[i])}, now.handshakes_refused[i]);
  }
  page.AddOneGauge("quantd_tls_certificate_expires_seconds",
                   "When the server's certificate expires, in seconds since 1970; 0 without TLS.",
                   now.certificate_expires);
  page.AddOneCounter(
      "quantd_connections_throttled_total",
      "How often the server paused reading a connection that sent many useless frames.",
      now.connections_throttled);
  page.AddOneCounter("quantd_answers_stalled_total",
                     "Responses given up because the client did not read them while others waited.",
                     now.answers_stalled);
}

void AddLoad(const Readings& now, double busy_core_seconds, Page& page) {
  page.AddOneGauge("quantd_calls", "Open calls, including Watch and reflection.", now.calls);
  page.AddOneGauge("quantd_inflight_requests", "Requests in progress.", now.inflight_requests);
  page.AddOneGauge("quantd_inflight_bytes",
                   "Bytes of memory reserved for requests in progress and their responses.",
                   now.inflight_bytes);
  page.AddOneGauge("quantd_receiving_bytes",
                   "Bytes of memory reserved for messages that are being received.",
                   now.receiving_bytes);
  page.AddOneGauge("quantd_queued_requests", "Requests that wait for memory or for a core.",
                   std::accumulate(now.waiting.begin(), now.waiting.end(), 0.0));
  page.AddOneGauge("quantd_busy_cores", "Cores that long computations are using.", now.busy_cores);
  page.AddOneGauge("quantd_cores", "Cores that computations may use (--threads).", now.cores);
  page.AddOneCounter("quantd_busy_core_seconds_total",
                     "Time that cores have computed, including short work, summed over the cores.",
                     busy_core_seconds);
  page.AddOneGauge("quantd_draining", "1 from the signal to shut down until the end, else 0.",
                   now.draining);
  page.AddOneGauge("quantd_pool_bytes", "Bytes of free memory that are kept for the next requests.",
                   now.pool_bytes);
  page.AddOneGauge("quantd_regions", "Mapped files of shared memory.", now.regions);
  page.AddOneGauge("quantd_region_bytes",
                   "Bytes of the mapped files of shared memory, which are not the server's own.",
                   now.region_bytes);
}

void AddTelemetry(const Readings& now, Page& page) {
  page.Start(MetricType::Counter, "quantd_guard_actions_total",
             "Actions against peers that take more than their share, by action.");
  for (size_t i = 0; i < kGuardActions.size(); ++i) {
    page.AddCounter({Label("action", kGuardActions[i])}, now.guard_actions[i]);
  }
  page.AddOneCounter("quantd_log_lines_total", "Log lines that were written.", now.log_lines);
  page.Start(MetricType::Counter, "quantd_log_lost_total",
             "Log lines that were not written, by reason: repeated, queue full, or write failed.");
  for (size_t i = 0; i < kLogLosses.size(); ++i) {
    page.AddCounter({Label("reason", kLogLosses[i])}, now.log_lost[i]);
  }
  page.AddOneCounter("quantd_spans_exported_total", "Spans that were written to --trace_file.",
                     now.spans_exported);
  page.Start(MetricType::Counter, "quantd_spans_dropped_total",
             "Spans that were not written, by reason: too many were waiting, or writing failed.");
  for (size_t i = 0; i < kSpanLosses.size(); ++i) {
    page.AddCounter({Label("reason", kSpanLosses[i])}, now.spans_dropped[i]);
  }
}

// The limits of some readings, and whether the server drains.
void AddLimits(const Readings& now, Page& page) {
  page.AddOneGauge(
      "quantd_memory_limit_bytes",
      "Memory that the server divides: the container's limit, or half of the machine's memory.",
      now.memory_limit_bytes);
  page.AddOneGauge("quantd_memory_budget_bytes",
                   "Limit of quantd_inflight_bytes (--memory_budget_bytes).",
                   now.memory_budget_bytes);
  page.AddOneGauge("quantd_receive_budget_bytes",
                   "Limit of quantd_receiving_bytes (--receive_budget_bytes).",
                   now.receive_budget_bytes);
  page.AddOneGauge("quantd_max_connections", "Limit of quantd_connections (--max_connections).",
                   now.max_connections);
}

}  // namespace

absl::string_view CodeName(size_t code) { return kCodeNames[code]; }

Metrics::Metrics(Build build, std::function<Readings()> read)
    : build_(std::move(build)), read_(std::move(read)) {
  ReadProcessStatus();  // opens the files that it reads
}

void Metrics::CountRejection(absl::string_view reason) {
  for (size_t i = 0; i < kRejections.size(); ++i) {
    if (kRejections[i].reason == reason) rejected_[i].Add(1);
  }
}

void Metrics::CountElements(Method method, DataType input, DataType output, int64_t elements) {
  operation(method).elements[Index(input)][Index(output)].Add(elements);
}

void Metrics::CountCall(Method of, absl::StatusCode code, Histogram::Duration time) {
  MethodMetrics& counts = method(of);
  counts.handled[static_cast<size_t>(code)].Add(1);
  counts.handling_seconds.Observe(time);
}

std::string Metrics::Text() const { return MakePage().Text(); }

std::array<uint64_t, kRejections.size()> Metrics::rejections() const {
  std::array<uint64_t, kRejections.size()> counts{};
  std::transform(rejected_.begin(), rejected_.end(), counts.begin(),
                 [](const Counter& counter) { return counter.value(); });
  return counts;
}

void Metrics::AddCompression(Page& page) const {
  page.Start(MetricType::Counter, "quantd_compressed_answers_total",
             "Compressed responses, by grpc-encoding.");
  page.AddCounter({Label("encoding", "gzip")}, compressed_answers_[0].value());
  page.AddCounter({Label("encoding", "deflate")}, compressed_answers_[1].value());
  page.Start(MetricType::Counter, "quantd_compressed_bytes_total",
             "Bytes of these responses before (in) and after (out) compression.");
  page.AddCounter({Label("direction", "in")}, compressed_bytes_in_.value());
  page.AddCounter({Label("direction", "out")}, compressed_bytes_out_.value());
  page.Start(MetricType::Histogram, "quantd_compression_seconds",
             "Time to compress one response, including responses that did not get smaller.");
  page.AddHistogram({}, compression_seconds_);
}

Page Metrics::MakePage() const {
  Page page;
  const Readings now = read_();
  AddCalls(methods_, page);
  AddOperations(operations_, page);
  page.Start(MetricType::Histogram, "quantd_queue_seconds",
             "Time from the first bytes of a request or item to the start of its kernel.");
  page.AddHistogram({}, queue_seconds_);
  AddCompression(page);
  AddLoad(now, static_cast<double>(busy_core_nanoseconds_.value()) / 1e9, page);
  AddLimits(now, page);
  page.Start(MetricType::Counter, "quantd_rejected_total",
             "Requests rejected before any work was done, by reason.");
  for (size_t i = 0; i < kRejections.size(); ++i) {
    page.AddCounter({Label("reason", kRejections[i].label)}, rejected_[i].value());
  }
  AddConnections(now, page);
  page.Start(MetricType::Counter, "quantd_reloads_total",
             "Reloads of changed certificates and tokens, by result.");
  for (size_t i = 0; i < kReloads.size(); ++i) {
    page.AddCounter({Label("what", kReloads[i]), Label("result", "ok")}, reloads_[i][0].value());
    page.AddCounter({Label("what", kReloads[i]), Label("result", "refused")},
                    reloads_[i][1].value());
  }
  AddTelemetry(now, page);
  page.AddOneCounter("quantd_saturated_elements_total",
                     "Elements outside the output's range, in requests with report_error.",
                     saturated_elements_.value());
  page.Start(MetricType::Gauge, "quantd_build_info",
             "Always 1; the labels name the running build.");
  page.AddGauge({Label("version", build_.version), Label("target", build_.target),
                 Label("http2", build_.http2)},
                1);

  const ProcessStatus process = ReadProcessStatus();
  page.AddOneCounter("process_cpu_seconds_total", "User and system CPU time.", process.cpu_seconds);
  page.AddOneGauge("process_resident_memory_bytes", "Resident memory.", process.resident_bytes);
  page.AddOneGauge("process_virtual_memory_bytes", "Virtual memory.", process.virtual_bytes);
  page.AddOneGauge("process_open_fds", "Open file descriptors.", process.open_fds);
  page.AddOneGauge("process_max_fds", "Largest number of open file descriptors.", process.max_fds);
  page.AddOneGauge("process_threads", "Threads.", process.threads);
  page.AddOneGauge("process_start_time_seconds", "When the process started, in seconds since 1970.",
                   process.start_time_seconds);
  return page;
}

}  // namespace quantd::metrics
