// Runs operations in this process, or on a server. The resulting bytes are the same.
#ifndef QUANTD_CLI_ENGINE_ENGINE_H_
#define QUANTD_CLI_ENGINE_ENGINE_H_

#include <memory>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "quantd/client/options.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/parameters.h"
#include "quantd/quantization_error.h"

namespace quantd::cli {

// Of any operation.
using Parameters = std::variant<QuantizeParameters, DynamicQuantizeParameters, DequantizeParameters,
                                QuantizeEmbeddingsParameters>;

// One call at a time.
class Engine {
 public:
  virtual ~Engine() = default;

  // Fills the tensors that the operation makes; they have the sizes of the core's plan. `error` may
  // be null; it is set if the parameters have report_error.
  virtual absl::Status Run(const Parameters& parameters, const DynamicQuantizeOutput& output,
                           QuantizationError* error) = 0;
  // The seconds that a server needed for the calls since the last time that this was asked for; the
  // rest of their time is that of the network. 0 in this process.
  virtual double TakeServerSeconds() { return 0; }
};

// Selects the instruction set `simd` for this process; empty: the best. INVALID_ARGUMENT if this
// CPU does not have it.
absl::Status SelectSimd(const std::string& simd);

// Computes in this process, on `threads` threads (0: one per CPU), after SelectSimd. Uses at most
// some 150 MiB of memory of its own, whatever the tensor. RESOURCE_EXHAUSTED if that is impossible:
// with very many scales that belong to elements far apart.
absl::StatusOr<std::unique_ptr<Engine>> MakeLocalEngine(int threads, const std::string& simd);

// Sends each tensor as a whole to a server. Returns UNAVAILABLE if nobody answers.
absl::StatusOr<std::unique_ptr<Engine>> MakeRemoteEngine(const std::string& address,
                                                         const client::ClientOptions& options);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_ENGINE_ENGINE_H_
