// A set's encoding, which is the contents of its file and what its hash is of: fields by ascending
// number, defaults left out, packed, minimal varints, no unknown fields, and every tensor as
// raw_data whose padding bits are 0. Two messages that mean the same are the same bytes.
#ifndef QUANTD_SERVER_STORED_PARAMETERS_CANONICAL_H_
#define QUANTD_SERVER_STORED_PARAMETERS_CANONICAL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "quantd/v1/parameters.pb.h"
#include "server/wire/split.h"
#include "server/wire/stored_set.h"

namespace quantd::stored_parameters {

inline constexpr uint64_t kMaxSetBytes = 16 << 20;

// Of a set in two parts (wire/split.h). INVALID_ARGUMENT, with the field from the set on
// ("quantize.scale.raw_data"): no kind; what only a request has; a tensor whose type, shape and
// contents do not go together; whatever else is wrong whichever x it is used with, as far as that
// can be seen without one; more than kMaxSetBytes.
absl::StatusOr<std::string> Encode(const v1::ParameterSet& skeleton,
                                   const decltype(wire::Split::raw)& raw);

// Of bytes that Encode made; any others are INVALID_ARGUMENT. The reference is left empty.
absl::StatusOr<std::unique_ptr<wire::StoredSet>> Decode(std::string bytes);

// What Decode takes at most beside the bytes.
constexpr uint64_t DecodeBytes(uint64_t size) { return size + (64 << 10); }

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_CANONICAL_H_
