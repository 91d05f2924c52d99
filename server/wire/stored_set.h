// A stored set of parameters, and how a request is completed with it: field by field, as if the
// client had written them itself, so that what follows can't tell the difference. Only for who
// stores sets, and for decode.cc.
#ifndef QUANTD_SERVER_WIRE_STORED_SET_H_
#define QUANTD_SERVER_WIRE_STORED_SET_H_

#include <string>

#include "absl/status/status.h"
#include "quantd/v1/parameters.pb.h"
#include "server/wire/split.h"

namespace quantd::wire {

// The operation whose request a set is; kQuantize, if it is none yet.
Method KindOf(const v1::ParameterSet& set);

// Stays where it is. Immutable once it is shared: then safe from any thread.
struct StoredSet {
  std::string reference;      // "name@sha256:HEX"
  std::string bytes;          // its encoding
  v1::ParameterSet skeleton;  // all of it but the tensors' bytes
  RawData raw;                // these, in `bytes`
};

// Adds what the set says to the request, and the views of its tensors to `raw`. INVALID_ARGUMENT:
// of `parameters`, when it is a set of another kind; of a field that both have. Dequantize takes
// scale, zero_point and granularity of a set of Quantize's.
absl::Status Complete(const StoredSet& set, v1::QuantizeRequest& request, RawData& raw);
absl::Status Complete(const StoredSet& set, v1::DequantizeRequest& request, RawData& raw);
absl::Status Complete(const StoredSet& set, v1::QuantizeEmbeddingsRequest& request, RawData& raw);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_STORED_SET_H_
