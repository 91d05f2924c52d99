// Quantized tensors as requests to dequantize them, and how far they are from what they were.
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

// The parameters of Dequantize but for output_type, and what their views are of.
class QuantizedParts {
 public:
  // `path`: in its folder parts that must be converted first are put.
  static absl::StatusOr<QuantizedParts> Of(const QuantizedTensor& tensor, const std::string& path);
  // A tensor about which the flags say the rest. INVALID_ARGUMENT, naming the flag.
  static absl::StatusOr<QuantizedParts> Of(const Source& x, const SpecFlags& flags,
                                           const std::string& path);

  const DequantizeParameters& parameters() const { return parameters_; }

 private:
  absl::StatusOr<TensorView> Add(const Source& source, const std::string& path);

  DequantizeParameters parameters_;
  std::vector<std::shared_ptr<const void>> owners_;
};

// Calls visit with parts of x and of what the quantized tensor dequantizes to, in order. x is of
// its shape. INVALID_ARGUMENT otherwise.
absl::Status CompareWith(
    const Executor& executor, const DequantizeParameters& quantized, const TensorView& x,
    absl::FunctionRef<void(absl::Span<const double> before, absl::Span<const double> after)> visit);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_ENGINE_DEQUANTIZING_H_
