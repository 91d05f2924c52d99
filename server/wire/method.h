// The methods of QuantizationService in one table, for decoding, metrics,
// calls and the items of streams.
#ifndef QUANTD_SERVER_WIRE_METHOD_H_
#define QUANTD_SERVER_WIRE_METHOD_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace quantd::wire {

enum class Method : uint8_t {
  kQuantize,
  kDequantize,
  kDynamicQuantize,
  kQuantizeEmbeddings,
  kCalibrate,
  kStream,
  kGetServerInfo,
};

inline constexpr absl::string_view kServiceName = "quantd.v1.QuantizationService";

struct MethodInfo {
  Method method;
  absl::string_view service;
  absl::string_view name;       // of the RPC, and the label grpc_method
  absl::string_view type;       // the label grpc_type
  absl::string_view operation;  // the label operation; empty: it computes no tensor itself
  uint32_t item_field;          // in StreamRequest; 0: a stream has no such item
  uint32_t item_response;       // in StreamResponse
};

// In the order of Method. The operations come first, so that a Method is an index into tables of
// operations. The first of these are those with one request and one response, which can also be
// items of a stream.
inline constexpr auto kMethods = std::to_array<MethodInfo>({
    {Method::kQuantize, kServiceName, "Quantize", "unary", "quantize", 2, 2},
    {Method::kDequantize, kServiceName, "Dequantize", "unary", "dequantize", 3, 3},
    {Method::kDynamicQuantize, kServiceName, "DynamicQuantize", "unary", "dynamic_quantize", 4, 4},
    {Method::kQuantizeEmbeddings, kServiceName, "QuantizeEmbeddings", "unary",
     "quantize_embeddings", 5, 6},
    {Method::kCalibrate, kServiceName, "Calibrate", "client_stream", "calibrate", 0, 0},
    {Method::kStream, kServiceName, "Stream", "bidi_stream", "", 0, 0},
    {Method::kGetServerInfo, kServiceName, "GetServerInfo", "unary", "", 0, 0},
});

constexpr const MethodInfo& Info(Method method) { return kMethods[static_cast<size_t>(method)]; }
constexpr absl::string_view Name(Method method) { return Info(method).name; }
constexpr size_t OperationIndex(Method method) { return static_cast<size_t>(method); }

// The number of rows that have `has`; they must come first.
template <typename Has>
constexpr size_t CountFirst(Has has) {
  size_t count = 0;
  while (count < kMethods.size() && has(kMethods[count])) ++count;
  for (size_t i = 0; i < kMethods.size(); ++i) {
    if (has(kMethods[i]) != (i < count)) return 0;
  }
  return count;
}
inline constexpr size_t kOperations =
    CountFirst([](const MethodInfo& info) { return !info.operation.empty(); });
inline constexpr size_t kUnaryOperations =
    CountFirst([](const MethodInfo& info) { return info.item_field != 0; });

static_assert(
    [] {
      for (size_t i = 0; i < kMethods.size(); ++i) {
        if (OperationIndex(kMethods[i].method) != i) return false;
      }
      return 0 < kUnaryOperations && kUnaryOperations <= kOperations;
    }(),
    "a row of kMethods is not where it belongs");

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_METHOD_H_
