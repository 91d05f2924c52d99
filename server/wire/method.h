// The methods of QuantizationService and ParametersService, in one table: what decoding, metrics,
// calls and a stream's items know of each.
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
  kPutParameters,
  kGetParameters,
  kListParameters,
};

struct MethodInfo {
  Method method;
  absl::string_view name;       // of the remote procedure, and the label grpc_method
  absl::string_view type;       // the label grpc_type
  absl::string_view operation;  // the label operation; empty: it works on no tensor itself
  uint32_t item_field;          // of StreamRequest; 0: a stream has no such item
  uint32_t item_answer;         // of StreamResponse
};

inline constexpr std::array<MethodInfo, 10> kMethods = {{
    {Method::kQuantize, "Quantize", "unary", "quantize", 2, 2},
    {Method::kDequantize, "Dequantize", "unary", "dequantize", 3, 3},
    {Method::kDynamicQuantize, "DynamicQuantize", "unary", "dynamic_quantize", 4, 4},
    {Method::kQuantizeEmbeddings, "QuantizeEmbeddings", "unary", "quantize_embeddings", 5, 6},
    {Method::kCalibrate, "Calibrate", "client_stream", "calibrate", 0, 0},
    {Method::kStream, "Stream", "bidi_stream", "", 0, 0},
    {Method::kGetServerInfo, "GetServerInfo", "unary", "", 0, 0},
    {Method::kPutParameters, "PutParameters", "unary", "", 0, 0},
    {Method::kGetParameters, "GetParameters", "unary", "", 0, 0},
    {Method::kListParameters, "ListParameters", "unary", "", 0, 0},
}};

inline constexpr absl::string_view kServiceName = "quantd.v1.QuantizationService";
inline constexpr absl::string_view kParametersServiceName = "quantd.v1.ParametersService";

constexpr bool IsOfParameters(Method method) { return method >= Method::kPutParameters; }
constexpr absl::string_view ServiceOf(Method method) {
  return IsOfParameters(method) ? kParametersServiceName : kServiceName;
}

constexpr const MethodInfo& Info(Method method) { return kMethods[static_cast<size_t>(method)]; }
constexpr absl::string_view Name(Method method) { return Info(method).name; }

// The operations come first: an index into what there is one of for each.
inline constexpr size_t kOperations = 5;
// Of these, first, those with one request and one answer, which may be a stream's items, too.
inline constexpr size_t kUnaryOperations = 4;
constexpr size_t OperationIndex(Method method) { return static_cast<size_t>(method); }

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_METHOD_H_
