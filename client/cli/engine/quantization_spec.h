// Converts the flags of a command to parameters of the core.
#ifndef QUANTD_CLI_ENGINE_QUANTIZATION_SPEC_H_
#define QUANTD_CLI_ENGINE_QUANTIZATION_SPEC_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/engine.h"

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

// A tensor given by a flag.
struct Operand {
  TensorView view;
  std::shared_ptr<const void> owner;  // of the view's bytes
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

// The output types of a tensor. kUnspecified: there is no such part.
struct QuantizedForm {
  DataType y = DataType::kUnspecified, scale = DataType::kUnspecified;
  DataType zero_point = DataType::kUnspecified, tensor_scale = DataType::kUnspecified;
  Shape scale_shape;
};

// Quantize with given scales, or DynamicQuantize. The parameters are complete except for x.
class QuantizationSpec {
 public:
  // INVALID_ARGUMENT names the wrong flag.
  static absl::StatusOr<QuantizationSpec> Of(const SpecFlags& flags);
  // The same with scales from elsewhere; flags that say what these say are errors.
  static absl::StatusOr<QuantizationSpec> Of(const SpecFlags& flags, GivenScales given);

  bool takes_int32() const { return given_.has_value(); }
  const Granularity& granularity() const { return dynamic_.granularity; }

  // The form of the result for x; looks only at its type, shape and size. Returns the core's
  // errors.
  absl::StatusOr<QuantizedForm> FormOf(const TensorView& x) const;
  // INVALID_ARGUMENT, with their number, if negative values of x would become 0: a symmetric range
  // of an unsigned type. x has floats.
  absl::Status CheckSigns(const TensorView& x) const;
  // Quantizes x into all parts of its form.
  absl::Status Run(Engine& engine, const TensorView& x, const DynamicQuantizeOutput& output,
                   QuantizationError* error) const;

 private:
  absl::Status Take(const SpecFlags& flags, GivenScales scales);

  DynamicQuantizeParameters dynamic_;
  std::optional<QuantizeParameters> given_;
  GivenScales scales_;
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_ENGINE_QUANTIZATION_SPEC_H_
