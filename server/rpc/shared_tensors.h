// The shared memory of one request: its tensors and the place of its response.
//
// Shared memory may change at any time. Kernels accept any bytes in it, and everything that decides
// how they run is read from the message or from a copy.
#ifndef QUANTD_SERVER_RPC_SHARED_TENSORS_H_
#define QUANTD_SERVER_RPC_SHARED_TENSORS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/regions/regions.h"
#include "server/wire/request.h"

namespace quantd::rpc {

// Empty for a request without shared memory. Call the steps in this order, on one thread at a time.
class SharedTensors {
 public:
  // Finds every span that the request names, and sets the views of its tensors. Returns the errors
  // of Regions::Find, or UNIMPLEMENTED if the request names a span and `regions` is null.
  absl::Status Find(regions::Regions* regions, wire::Request& request, uint64_t peer);

  // The bytes that Copy allocates.
  uint64_t copied_bytes() const { return copied_bytes_; }
  // Copies scales and zero points out of shared memory, because they decide which kernel runs. x
  // stays.
  absl::Status Copy(wire::Request& request);

  // Checks the place of y. Returns INVALID_ARGUMENT if its first `bytes` overlap a tensor of the
  // request: kernels read in pieces, and read some of them twice.
  absl::Status CheckOutput(uint64_t bytes) const;
  // The first `bytes` of y's place, prepared for writing. Ends early if `stop` returns true.
  absl::Span<uint8_t> PrepareOutput(uint64_t bytes, absl::FunctionRef<bool()> stop) const;

  // Whether a region was truncated during this request, which must stop and fail with Damage().
  bool damaged() const;
  absl::Status Damage() const;

 private:
  struct Input {
    wire::TensorField field;
    std::string region;
    regions::SharedSpan span;
  };

  std::vector<Input> inputs_;
  std::optional<Input> output_;  // its field is unused
  uint64_t copied_bytes_ = 0;
  std::vector<std::unique_ptr<uint8_t[]>> copies_;
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_SHARED_TENSORS_H_
