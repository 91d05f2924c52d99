// Inspects a message before all of it has arrived.
#ifndef QUANTD_SERVER_WIRE_ARRIVING_H_
#define QUANTD_SERVER_WIRE_ARRIVING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "quantd/data_type.h"
#include "server/wire/request.h"
#include "server/wire/scan.h"

namespace quantd::wire {

// The raw_data of a tensor that is arriving. It is a guess: later fields may override it.
struct ArrivingTensor {
  DataType data_type = DataType::kUnspecified;
  size_t begin = 0;    // offset in the message
  uint64_t bytes = 0;  // length according to the message
  // Offsets of the tensor's field, of the tensor, and of its field raw_data, and whether that is
  // the tensor's last field.
  size_t field = 0, tensor = 0, raw_data = 0;
  bool is_last = false;

  uint64_t end() const { return begin + bytes; }
};

// x of a QuantizeRequest or DynamicQuantizeRequest of which only the first bytes have arrived, if
// they end within its raw_data and its data_type came before.
std::optional<ArrivingTensor> FindArrivingX(BytesView so_far);

// The same request without elements: x's raw_data is empty. `so_far`: the bytes in which x was
// found; `behind`: those after x. REQUIRES: x.is_last.
std::string WithoutElements(BytesView so_far, const ArrivingTensor& x, absl::string_view behind);
// Decodes a QuantizeRequest that WithoutElements has returned. Fails if its x is another tensor
// than `x`, or if tensors are not in raw_data. The request views `message`; its x has no bytes yet.
absl::StatusOr<Request> DecodeWithoutElements(const ArrivingTensor& x, absl::string_view message);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_ARRIVING_H_
