// What a message says before all of it is here.
#ifndef QUANTD_SERVER_WIRE_ARRIVING_H_
#define QUANTD_SERVER_WIRE_ARRIVING_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "quantd/data_type.h"
#include "server/wire/scan.h"

namespace quantd::wire {

// The raw_data of a tensor that is arriving. A guess: what comes behind it may say otherwise.
struct ArrivingTensor {
  DataType data_type = DataType::kUnspecified;
  size_t begin = 0;    // in the message
  uint64_t bytes = 0;  // as it says itself
};

// x of a DynamicQuantizeRequest of which the first bytes are here, when these end within its
// raw_data and its data_type came before.
std::optional<ArrivingTensor> FindArrivingX(BytesView so_far);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_ARRIVING_H_
