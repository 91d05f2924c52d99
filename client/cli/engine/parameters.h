// Converts the flags of a command, and quantized tensors of files, to parameters of the core.
#ifndef QUANTD_CLI_ENGINE_PARAMETERS_H_
#define QUANTD_CLI_ENGINE_PARAMETERS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "files/quantized_file.h"
#include "quantd/dequantize.h"
#include "quantd/operation.h"

namespace quantd::cli {

// The flags with the same names.
struct SpecFlags {
  std::string type, scale_type, scale, zero_point, tensor_scale, precision;
  std::string zero_point_order = "after_rounding", non_finite = "reject";
  std::optional<int64_t> axis;
  int64_t block_size = 0;
  std::vector<int64_t> block_shape;
  bool symmetric = false, saturate = true, report_error = true;

  Granularity granularity() const;
  bool operator==(const SpecFlags&) const = default;
};

// Reads --scale, --zero_point or --tensor_scale: numbers (packed as `type`), or a .npy (other float
// types are accepted; also INT32, if allowed). INVALID_ARGUMENT names the flag.
absl::StatusOr<Operand> ParseOperand(const std::string& text, absl::string_view flag, DataType type,
                                     bool int32_allowed);

// Scales from elsewhere than the flags.
struct GivenScales {
  Operand scale;
  std::optional<Operand> zero_point = {};
  DataType type = DataType::kUnspecified;
  std::optional<int64_t> axis = {};
};

// The names of the types that can be quantized to; with `has_formats` also those of types with
// blocks and scales, such as mxfp8.
std::vector<std::string> QuantizedTypeNames(bool has_formats);

// The names of vector databases' formats: the values of --preset.
std::vector<std::string> PresetNames();
// Recipe, output type and bit options. Returns INVALID_ARGUMENT, with all names, if it is unknown.
absl::StatusOr<QuantizeEmbeddingsParameters> PresetOf(absl::string_view name);

// Quantize with given scales, or DynamicQuantize. The parameters are complete except for x.
class QuantizationSpec {
 public:
  // INVALID_ARGUMENT names the wrong flag.
  static absl::StatusOr<QuantizationSpec> Of(const SpecFlags& flags);
  // The same with scales from elsewhere; flags that say what these say are errors.
  static absl::StatusOr<QuantizationSpec> Of(const SpecFlags& flags, GivenScales given);

  bool takes_int32() const { return given_.has_value(); }
  const Granularity& granularity() const { return dynamic_.granularity; }

  // The tensors of the result for x, also those that are given; looks only at x's type, shape and
  // size. Returns the core's errors.
  absl::StatusOr<ResultLayout> LayoutFor(const TensorView& x) const;
  // INVALID_ARGUMENT, with their number, if negative values of x would become 0: a symmetric range
  // of an unsigned type. x has floats.
  absl::Status CheckSigns(const TensorView& x) const;
  // Quantizes x into all tensors of its layout.
  absl::Status Run(Engine& engine, const TensorView& x, const DynamicQuantizeOutput& output,
                   QuantizationError* error) const;

 private:
  absl::Status Take(const SpecFlags& flags, GivenScales scales);
  Parameters ParametersFor(const TensorView& x) const;

  DynamicQuantizeParameters dynamic_;
  std::optional<QuantizeParameters> given_;
  GivenScales scales_;
};

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
  TensorView Take(absl::StatusOr<Operand> operand, absl::Status* status);

  DequantizeParameters parameters_;
  std::vector<std::shared_ptr<const void>> owners_;
};

// Calls visit with parts of x and of the dequantized tensor, in order. Returns INVALID_ARGUMENT if
// the shapes differ.
absl::Status CompareWith(
    const Executor& executor, const DequantizeParameters& quantized, const TensorView& x,
    absl::FunctionRef<void(absl::Span<const double> before, absl::Span<const double> after)> visit);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_ENGINE_PARAMETERS_H_
