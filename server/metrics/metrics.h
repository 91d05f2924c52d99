// Everything that quantd counts. Every series exists from the start, with value 0, and no label has
// a value that a client chooses: what a client can make up (an unknown method) is not counted.
//
//   metrics.method(Rpc::kQuantize).started.Add(1);
//   metrics.operation(Operation::kQuantize).kernel_seconds.Observe(elapsed);
//   std::string page = metrics.Text();
#ifndef QUANTD_SERVER_METRICS_METRICS_H_
#define QUANTD_SERVER_METRICS_METRICS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "quantd/data_type.h"
#include "server/metrics/histogram.h"

namespace quantd::metrics {

// The remote procedures of QuantizationService.
enum class Rpc : uint8_t { kQuantize, kDequantize, kDynamicQuantize, kStream, kGetServerInfo };
inline constexpr size_t kRpcs = 5;

// The operations, of calls and of a stream's items alike.
enum class Operation : uint8_t { kQuantize, kDequantize, kDynamicQuantize };
inline constexpr size_t kOperations = 3;

// Why a request was turned away before any work.
enum class Rejection : uint8_t { kQueueFull, kOverBudget, kAnswerTooLarge };
inline constexpr size_t kRejections = 3;

// Codes of gRPC: 0 (OK) to 16 (UNAUTHENTICATED).
inline constexpr size_t kCodes = 17;

struct MethodMetrics {
  Counter started;
  Counter received;  // messages
  Counter sent;      // messages
  std::array<Counter, kCodes> handled;
  Histogram handling_seconds;
};

struct OperationMetrics {
  // By input and output type: indices into quantd::kDataTypes. Pairs that the operation does not
  // have stay 0 and are not shown.
  std::array<std::array<Counter, kDataTypes.size()>, kDataTypes.size()> elements;
  Counter bytes_in;
  Counter bytes_out;
  Histogram kernel_seconds;
};

// What is read when somebody asks. Called from the HTTP threads.
struct Gauges {
  std::function<double()> inflight_requests;
  std::function<double()> inflight_bytes;
  std::function<double()> pool_bytes;
};

// Safe from any thread.
class Metrics {
 public:
  // `version` and `target` (the instruction set in use) are labels of quantd_build_info.
  Metrics(std::string version, std::string target, Gauges gauges);

  MethodMetrics& method(Rpc rpc) { return methods_[static_cast<size_t>(rpc)]; }
  OperationMetrics& operation(Operation operation) {
    return operations_[static_cast<size_t>(operation)];
  }
  Counter& rejected(Rejection reason) { return rejected_[static_cast<size_t>(reason)]; }
  Histogram& queue_seconds() { return queue_seconds_; }
  Counter& saturated_elements() { return saturated_elements_; }

  // Counts a finished operation.
  void CountElements(Operation operation, DataType input, DataType output, int64_t elements);

  // The page in Prometheus' text format.
  std::string Text() const;

 private:
  std::string version_;
  std::string target_;
  Gauges gauges_;
  std::array<MethodMetrics, kRpcs> methods_;
  std::array<OperationMetrics, kOperations> operations_;
  std::array<Counter, kRejections> rejected_;
  Histogram queue_seconds_;
  Counter saturated_elements_;
};

}  // namespace quantd::metrics

#endif  // QUANTD_SERVER_METRICS_METRICS_H_
