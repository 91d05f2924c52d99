// See metrics.h. Names and labels are those of tests/golden/metrics.txt.
#include "server/metrics/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

#include "server/metrics/process.h"

namespace quantd::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr absl::string_view kService = "quantd.v1.QuantizationService";
constexpr absl::string_view kRpcNames[kRpcs] = {"Quantize", "Dequantize", "DynamicQuantize",
                                                "Stream", "GetServerInfo"};
constexpr absl::string_view kRpcTypes[kRpcs] = {"unary", "unary", "unary", "bidi_stream", "unary"};
constexpr absl::string_view kOperationNames[kOperations] = {"quantize", "dequantize",
                                                            "dynamic_quantize"};
constexpr absl::string_view kRejectionNames[kRejections] = {"queue_full", "over_budget",
                                                            "answer_too_large"};
// As go-grpc-prometheus has them, for whose labels dashboards and alerts are written.
constexpr absl::string_view kCodeNames[kCodes] = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

ClientMetric::Label Label(absl::string_view name, absl::string_view value) {
  ClientMetric::Label label;
  label.name = std::string(name);
  label.value = std::string(value);
  return label;
}

Labels RpcLabels(size_t rpc) {
  return {Label("grpc_type", kRpcTypes[rpc]), Label("grpc_service", kService),
          Label("grpc_method", kRpcNames[rpc])};
}

// The families in the order in which they are shown.
class Page {
 public:
  void Start(MetricType type, absl::string_view name, absl::string_view help) {
    MetricFamily& family = families_.emplace_back();
    family.name = std::string(name);
    family.help = std::string(help);
    family.type = type;
  }
  void AddCounter(Labels labels, double value) { Add(std::move(labels)).counter.value = value; }
  void AddGauge(Labels labels, double value) { Add(std::move(labels)).gauge.value = value; }
  void AddHistogram(Labels labels, const Histogram& histogram) {
    Add(std::move(labels)).histogram = histogram.Collect();
  }
  const std::vector<MetricFamily>& families() const { return families_; }

 private:
  ClientMetric& Add(Labels labels) {
    ClientMetric& metric = families_.back().metric.emplace_back();
    metric.label = std::move(labels);
    return metric;
  }
  std::vector<MetricFamily> families_;
};

// Whether the operation has this pair of types (the tables of the contract's numerics).
bool HasPair(Operation operation, const DataTypeInfo& input, const DataTypeInfo& output) {
  const auto is_wide = [](const DataTypeInfo& type) { return type.kind == DataTypeKind::kFloat; };
  const auto is_narrow = [](const DataTypeInfo& type) {
    return type.kind == DataTypeKind::kFloat8 || type.kind == DataTypeKind::kFloat4 ||
           (type.kind == DataTypeKind::kInteger && type.type != DataType::kInt32);
  };
  const auto is_int32 = [](const DataTypeInfo& type) { return type.type == DataType::kInt32; };
  switch (operation) {
    case Operation::kQuantize:
      return (is_wide(input) || is_int32(input)) && is_narrow(output);
    case Operation::kDequantize:
      return (is_narrow(input) || is_int32(input)) && is_wide(output);
    case Operation::kDynamicQuantize:
      return is_wide(input) && is_narrow(output);
  }
  return false;
}

size_t Index(DataType type) {
  size_t index = 0;
  while (index + 1 < kDataTypes.size() && kDataTypes[index].type != type) ++index;
  return index;
}

void AddCalls(const std::array<MethodMetrics, kRpcs>& methods, Page& page) {
  const auto counter = [&](absl::string_view name, absl::string_view help,
                           Counter MethodMetrics::* member) {
    page.Start(MetricType::Counter, name, help);
    for (size_t rpc = 0; rpc < kRpcs; ++rpc) {
      page.AddCounter(RpcLabels(rpc), (methods[rpc].*member).value());
    }
  };
  counter("grpc_server_started_total", "Calls that reached the server.", &MethodMetrics::started);
  page.Start(MetricType::Counter, "grpc_server_handled_total",
             "Calls that are over, by status code.");
  for (size_t rpc = 0; rpc < kRpcs; ++rpc) {
    for (size_t code = 0; code < kCodes; ++code) {
      Labels labels = RpcLabels(rpc);
      labels.push_back(Label("grpc_code", kCodeNames[code]));
      page.AddCounter(std::move(labels), methods[rpc].handled[code].value());
    }
  }
  counter("grpc_server_msg_received_total", "Messages received.", &MethodMetrics::received);
  counter("grpc_server_msg_sent_total", "Messages sent.", &MethodMetrics::sent);
  page.Start(MetricType::Histogram, "grpc_server_handling_seconds",
             "Time from a call's arrival to its end.");
  for (size_t rpc = 0; rpc < kRpcs; ++rpc) {
    page.AddHistogram(RpcLabels(rpc), methods[rpc].handling_seconds);
  }
}

void AddOperations(const std::array<OperationMetrics, kOperations>& operations, Page& page) {
  page.Start(MetricType::Counter, "quantd_elements_total",
             "Tensor elements quantized or dequantized.");
  for (size_t i = 0; i < kOperations; ++i) {
    for (size_t in = 0; in < kDataTypes.size(); ++in) {
      for (size_t out = 0; out < kDataTypes.size(); ++out) {
        if (!HasPair(static_cast<Operation>(i), kDataTypes[in], kDataTypes[out])) continue;
        page.AddCounter(
            {Label("operation", kOperationNames[i]), Label("input_type", kDataTypes[in].name),
             Label("output_type", kDataTypes[out].name)},
            operations[i].elements[in][out].value());
      }
    }
  }
  page.Start(MetricType::Counter, "quantd_tensor_bytes_total",
             "Packed bytes of x (in) and of y and its scales (out).");
  for (size_t i = 0; i < kOperations; ++i) {
    page.AddCounter({Label("operation", kOperationNames[i]), Label("direction", "in")},
                    operations[i].bytes_in.value());
    page.AddCounter({Label("operation", kOperationNames[i]), Label("direction", "out")},
                    operations[i].bytes_out.value());
  }
  page.Start(MetricType::Histogram, "quantd_kernel_seconds",
             "Time to execute one operation, from the planned request to the written answer.");
  for (size_t i = 0; i < kOperations; ++i) {
    page.AddHistogram({Label("operation", kOperationNames[i])}, operations[i].kernel_seconds);
  }
}

}  // namespace

Metrics::Metrics(std::string version, std::string target, Gauges gauges)
    : version_(std::move(version)), target_(std::move(target)), gauges_(std::move(gauges)) {}

void Metrics::CountElements(Operation op, DataType input, DataType output, int64_t elements) {
  operation(op).elements[Index(input)][Index(output)].Add(elements);
}

std::string Metrics::Text() const {
  Page page;
  const auto gauge = [&page](absl::string_view name, absl::string_view help, double value) {
    page.Start(MetricType::Gauge, name, help);
    page.AddGauge({}, value);
  };
  const auto counter = [&page](absl::string_view name, absl::string_view help, double value) {
    page.Start(MetricType::Counter, name, help);
    page.AddCounter({}, value);
  };
  AddCalls(methods_, page);
  AddOperations(operations_, page);
  page.Start(MetricType::Histogram, "quantd_queue_seconds",
             "Time that a request waits for its permit.");
  page.AddHistogram({}, queue_seconds_);
  gauge("quantd_inflight_requests", "Requests that hold a permit.", gauges_.inflight_requests());
  gauge("quantd_inflight_bytes", "Bytes of the permits.", gauges_.inflight_bytes());
  gauge("quantd_pool_bytes", "Bytes that are free but kept for the next requests.",
        gauges_.pool_bytes());
  page.Start(MetricType::Counter, "quantd_rejected_total",
             "Requests turned away before any work, by reason.");
  for (size_t i = 0; i < kRejections; ++i) {
    page.AddCounter({Label("reason", kRejectionNames[i])}, rejected_[i].value());
  }
  counter("quantd_saturated_elements_total",
          "Elements outside the output's range, of requests that asked for the error report.",
          saturated_elements_.value());
  page.Start(MetricType::Gauge, "quantd_build_info", "1, with what is running as labels.");
  page.AddGauge({Label("version", version_), Label("target", target_)}, 1);

  const ProcessStatus process = ReadProcessStatus();
  counter("process_cpu_seconds_total", "User and system CPU time.", process.cpu_seconds);
  gauge("process_resident_memory_bytes", "Resident memory.", process.resident_bytes);
  gauge("process_virtual_memory_bytes", "Virtual memory.", process.virtual_bytes);
  gauge("process_open_fds", "Open file descriptors.", process.open_fds);
  gauge("process_max_fds", "Most file descriptors that may be open.", process.max_fds);
  gauge("process_threads", "Threads.", process.threads);
  gauge("process_start_time_seconds", "When the process started, in seconds since 1970.",
        process.start_time_seconds);
  return prometheus::TextSerializer().Serialize(page.families());
}

}  // namespace quantd::metrics
