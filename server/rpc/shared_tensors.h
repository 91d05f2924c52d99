// The shared memory of one request: where its tensors lie and where its response goes.
//
// What lies there may change at any time: the kernels take any bytes, and everything that they are
// told about them comes from the message, or from a copy.
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

// Empty for a request without any. The steps in this order; not safe from two threads at a time.
class SharedTensors {
 public:
  // Finds every span that the request names, and sets its tensors' views. The errors of
  // Regions::Find; UNIMPLEMENTED when there are none (`regions` is null) and the request names one.
  absl::Status Find(regions::Regions* regions, wire::Request& request);

  // The same of one tensor.
  absl::Status FindTensor(regions::Regions* regions, const wire::SharedTensor& shared,
                          TensorView& tensor);

  // What Copy takes.
  uint64_t copied_bytes() const { return copied_bytes_; }
  // Scales and zero points out of shared memory: they decide which kernel runs, and more. x stays.
  absl::Status Copy(wire::Request& request);

  // Where y goes. INVALID_ARGUMENT when its `bytes` are also some of a tensor of the request, all
  // or in part: kernels read in pieces, and some of them twice.
  absl::Status CheckOutput(uint64_t bytes) const;
  // Its first `bytes`, ready to be written. Goes on until `stop` says so.
  absl::Span<uint8_t> PrepareOutput(uint64_t bytes, absl::FunctionRef<bool()> stop) const;

  // Whether a region was cut short under this request: it is to stop, and fails with Damage().
  bool damaged() const;
  absl::Status Damage() const;

 private:
  struct Input {
    wire::TensorField field;
    std::string region;
    regions::SharedSpan span;
  };

  std::vector<Input> inputs_;
  std::optional<Input> output_;  // its field means nothing
  uint64_t copied_bytes_ = 0;
  std::vector<std::unique_ptr<uint8_t[]>> copies_;
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_SHARED_TENSORS_H_
