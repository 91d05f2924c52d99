// A decoded request: the core's parameters, and how the answer shall be encoded. Knows no gRPC and
// no protobuf.
#ifndef QUANTD_SERVER_WIRE_REQUEST_H_
#define QUANTD_SERVER_WIRE_REQUEST_H_

#include <cstdint>
#include <variant>
#include <vector>

#include "quantd/parameters.h"
#include "server/wire/method.h"

namespace quantd::wire {

// How tensors are written into the answer.
enum class Encoding : uint8_t {
  kRaw,     // raw_data; the fast path
  kValues,  // float_values or int_values, by the type of the tensor
};

// Movable. The tensors in `parameters` view the message's slices, which must outlive it, or
// `packed`, which moves along.
struct Request {
  // The alternative's index is the Method's number.
  std::variant<QuantizeParameters, DequantizeParameters, DynamicQuantizeParameters> parameters;
  Encoding output_encoding = Encoding::kRaw;
  // Bytes of tensors that came as values, one vector each.
  std::vector<std::vector<uint8_t>> packed;

  Method method() const { return static_cast<Method>(parameters.index()); }
};

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_REQUEST_H_
