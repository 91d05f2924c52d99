// Inspects a message before all of it has arrived.
#ifndef QUANTD_SERVER_WIRE_ARRIVING_H_
#define QUANTD_SERVER_WIRE_ARRIVING_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "quantd/data_type.h"
#include "server/wire/scan.h"

namespace quantd::wire {

// The raw_data of a tensor that is arriving. It is a guess: later fields may override it.
struct ArrivingTensor {
  DataType data_type = DataType::kUnspecified;
  size_t begin = 0;    // offset in the message
  uint64_t bytes = 0;  // length according to the message
};

// x of a DynamicQuantizeRequest of which only the first bytes have arrived, if they end within its
// raw_data and its data_type came before.
std::optional<ArrivingTensor> FindArrivingX(BytesView so_far);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_ARRIVING_H_
