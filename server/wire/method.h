// The three operations, as the wire knows them: a call's method, or the case of a stream's item.
#ifndef QUANTD_SERVER_WIRE_METHOD_H_
#define QUANTD_SERVER_WIRE_METHOD_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace quantd::wire {

enum class Method : uint8_t { kQuantize, kDequantize, kDynamicQuantize };

inline constexpr std::array<Method, 3> kMethods = {Method::kQuantize, Method::kDequantize,
                                                   Method::kDynamicQuantize};

// The name of the remote procedure: "Quantize", "Dequantize", "DynamicQuantize".
constexpr absl::string_view Name(Method method) {
  constexpr absl::string_view kNames[] = {"Quantize", "Dequantize", "DynamicQuantize"};
  return kNames[static_cast<int>(method)];
}

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_METHOD_H_
