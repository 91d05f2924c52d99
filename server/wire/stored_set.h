// A stored set of parameters, and how it completes a request: field by field, as if the client had
// written the fields itself, so that later steps see no difference. Only for code that stores sets,
// and for decode.cc.
#ifndef QUANTD_SERVER_WIRE_STORED_SET_H_
#define QUANTD_SERVER_WIRE_STORED_SET_H_

#include <string>

#include "absl/status/status.h"
#include "quantd/v1/parameters.pb.h"
#include "server/wire/split.h"

namespace quantd::wire {

// The operation whose request the set is; kQuantize if it has no kind yet.
Method KindOf(const v1::ParameterSet& set);

// Must not move. Immutable once it is shared, and then thread-safe.
struct StoredSet {
  std::string reference;      // "name@sha256:HEX"
  std::string bytes;          // its encoding
  v1::ParameterSet skeleton;  // everything but the bytes of its tensors
  RawData raw;                // the bytes of its tensors, in `bytes`
};

// Adds the set's fields to the request, and the views of its tensors to `raw`. Returns
// INVALID_ARGUMENT for `parameters` if the set is of another kind, or for a field that both have.
// Dequantize takes scale, zero_point and granularity from a set of Quantize.
absl::Status Complete(const StoredSet& set, v1::QuantizeRequest& request, RawData& raw);
absl::Status Complete(const StoredSet& set, v1::DequantizeRequest& request, RawData& raw);
absl::Status Complete(const StoredSet& set, v1::QuantizeEmbeddingsRequest& request, RawData& raw);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_STORED_SET_H_
