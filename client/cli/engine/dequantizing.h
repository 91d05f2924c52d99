// Makes requests to dequantize quantized tensors, and compares the results with the originals.
#ifndef QUANTD_CLI_ENGINE_DEQUANTIZING_H_
#define QUANTD_CLI_ENGINE_DEQUANTIZING_H_

#include <deque>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/quantization_spec.h"
#include "files/quantized_file.h"
#include "quantd/dequantize.h"

namespace quantd::cli {

// The parameters of Dequantize except for output_type, and the owners of their memory.
class QuantizedParts {
 public:
  // `path`: parts that must be converted first are written to its folder.
  static absl::StatusOr<QuantizedParts> Of(const QuantizedTensor& tensor, const std::string& path);
  // A tensor that the flags describe. Returns INVALID_ARGUMENT, with the flag, if they are invalid.
  static absl::StatusOr<QuantizedParts> Of(const Source& x, const SpecFlags& flags,
                                           const std::string& path);

  const DequantizeParameters& parameters() const { return parameters_; }

 private:
  absl::StatusOr<TensorView> Add(const Source& source, const std::string& path);

  DequantizeParameters parameters_;
  std::vector<std::shared_ptr<const void>> owners_;
};

// Calls visit with parts of x and of the dequantized tensor, in order. Returns INVALID_ARGUMENT if
// the shapes differ.
absl::Status CompareWith(
    const Executor& executor, const DequantizeParameters& quantized, const TensorView& x,
    absl::FunctionRef<void(absl::Span<const double> before, absl::Span<const double> after)> visit);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_ENGINE_DEQUANTIZING_H_
