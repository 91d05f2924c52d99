// The parameters of the operations: the fields of the requests, independent of the wire format.
//
// Tensors are views: their bytes must outlive the parameters and every plan made from them.
#ifndef QUANTD_PARAMETERS_H_
#define QUANTD_PARAMETERS_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "quantd/arithmetic.h"
#include "quantd/data_type.h"
#include "quantd/shape.h"

namespace quantd {

// A tensor: type, shape, and packed little-endian row-major bytes (for the packing see the data
// types in the proto). Nothing is checked here; the plan checks that the number of bytes matches
// type and shape.
struct TensorView {
  DataType data_type = DataType::kUnspecified;
  Shape shape;
  absl::Span<const uint8_t> bytes;
};

// Which elements share a scale. All unset: decided by the scale's shape (one for the tensor, 1-D
// along axis 1, or groups); for DynamicQuantize, one scale for the tensor.
struct Granularity {
  std::optional<int64_t> axis = std::nullopt;  // in [-rank, rank - 1]
  int64_t block_size = 0;                      // elements in a block along axis; 0: no blocks
  Shape block_shape = {};  // one length per dimension of x; -1: the whole dimension
};

enum class Symmetry : uint8_t {
  kDefault,  // asymmetric for integers, symmetric for FLOAT8, FLOAT6 and FLOAT4
  kAsymmetric,
  kSymmetric,
};

// ONNX QuantizeLinear 10 to 25, oneDNN Graph Quantize.
struct QuantizeParameters {
  TensorView x;
  TensorView scale;
  std::optional<TensorView> zero_point = std::nullopt;
  DataType output_type = DataType::kUnspecified;
  Granularity granularity = {};
  bool saturate = true;
  DataType precision = DataType::kUnspecified;
  ZeroPointOrder zero_point_order = ZeroPointOrder::kAfterRounding;
  bool report_error = false;
};

// ONNX DequantizeLinear 10 to 25, oneDNN Graph Dequantize.
struct DequantizeParameters {
  TensorView x;
  TensorView scale;
  std::optional<TensorView> zero_point = std::nullopt;
  std::optional<TensorView> tensor_scale = std::nullopt;
  DataType output_type = DataType::kUnspecified;
  Granularity granularity = {};
};

// ONNX DynamicQuantizeLinear 11, oneDNN Graph DynamicQuantize, OCP MX 1.0, NVFP4.
struct DynamicQuantizeParameters {
  TensorView x;
  DataType output_type = DataType::kUnspecified;
  Granularity granularity = {};
  bool saturate = true;
  DataType scale_type = DataType::kUnspecified;
  Symmetry symmetry = Symmetry::kDefault;
  NonFinite non_finite = NonFinite::kReject;
  bool report_error = false;
};

// Embeddings in the formats of vector databases. The last dimension of x is the embedding.
struct QuantizeEmbeddingsParameters {
  TensorView x;
  EmbeddingRecipe recipe = EmbeddingRecipe::kUnspecified;
  // RANGES only, and required for it: FLOAT [2, d], the lowest and the highest value of each
  // dimension that is used.
  std::optional<TensorView> ranges = std::nullopt;
  DataType output_type = DataType::kUnspecified;
  int64_t dimensions = 0;  // how many first values of each embedding are used; 0: all
  bool normalize = false;
  BitOrder bit_order = BitOrder::kUnspecified;              // BITS only
  BitThreshold bit_threshold = BitThreshold::kUnspecified;  // BITS only
  SignedBits signed_bits = SignedBits::kUnspecified;        // BITS to INT8 only
  NonFinite non_finite = NonFinite::kReject;
  bool report_error = false;  // not with BITS
};

}  // namespace quantd

#endif  // QUANTD_PARAMETERS_H_
