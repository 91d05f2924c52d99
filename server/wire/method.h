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
// operations. Each has one request and one response, and can also be an item of a stream.
inline constexpr auto kMethods = std::to_array<MethodInfo>({
    {Method::kQuantize, kServiceName, "Quantize", "unary", "quantize", 2, 2},
    {Method::kDequantize, kServiceName, "Dequantize", "unary", "dequantize", 3, 3},
    {Method::kDynamicQuantize, kServiceName, "DynamicQuantize", "unary", "dynamic_quantize", 4, 4},
    {Method::kQuantizeEmbeddings, kServiceName, "QuantizeEmbeddings", "unary",
     "quantize_embeddings", 5, 6},
    {Method::kStream, kServiceName, "Stream", "bidi_stream", "", 0, 0},
    {Method::kGetServerInfo, kServiceName, "GetServerInfo", "unary", "", 0, 0},
});

constexpr const MethodInfo& Info(Method method) { return kMethods[static_cast<size_t>(method)]; }
constexpr absl::string_view Name(Method method) { return Info(method).name; }
constexpr size_t OperationIndex(Method method) { return static_cast<size_t>(method); }

inline constexpr size_t kOperations = 4;

static_assert(
    [] {
      for (size_t i = 0; i < kMethods.size(); ++i) {
        const bool is_operation = i < kOperations;
        if (OperationIndex(kMethods[i].method) != i ||
            kMethods[i].operation.empty() == is_operation ||
            (kMethods[i].item_field != 0) != is_operation) {
          return false;
        }
      }
      return true;
    }(),
    "a row of kMethods is not where it belongs");

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_METHOD_H_
