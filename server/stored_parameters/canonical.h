// The encoding of a set: the contents of its file, and what its hash is computed from. Fields are
// sorted by number, defaults left out, packed, with minimal varints, without unknown fields, and
// every tensor is raw_data with padding bits of 0. Messages with the same meaning have the same
// bytes.
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

// Encodes a set in two parts (wire/split.h). Returns INVALID_ARGUMENT, with the field's path within
// the set ("quantize.scale.raw_data"): no kind; a field that only a request has; a tensor whose
// type, shape and contents do not fit together; anything else that is wrong for every x and can be
// seen without one; or more than kMaxSetBytes.
absl::StatusOr<std::string> Encode(const v1::ParameterSet& skeleton,
                                   const decltype(wire::Split::raw)& raw);

// Decodes bytes that Encode made; other bytes are INVALID_ARGUMENT. The reference is left empty.
absl::StatusOr<std::unique_ptr<wire::StoredSet>> Decode(std::string bytes);

// The most that Decode allocates in addition to the bytes.
constexpr uint64_t DecodeBytes(uint64_t size) { return size + (64 << 10); }

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_CANONICAL_H_
