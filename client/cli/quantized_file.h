// How a quantized tensor is kept in files, so that it can be read back with one argument: which
// tensors belong together, of which types and shapes they are, and with which blocks they were
// made.
//
// A JSON text under the key "quantd" of a .safetensors' metadata, or STEM.quantization.json beside
// a set of .npy:
//
//   {"version": 1, "tensors": {"w": {"input_type": "float", "axis": 0, "block_size": 32,
//     "y": {"tensor": "w", "type": "uint4", "shape": [3, 5]},
//     "scale": {"tensor": "w_scale", "type": "float", "shape": [1, 5]}, "zero_point": {...}}}}
#ifndef QUANTD_CLI_QUANTIZED_FILE_H_
#define QUANTD_CLI_QUANTIZED_FILE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "quantd/parameters.h"
#include "source.h"
#include "tensor_file.h"

namespace quantd::cli {

// A tensor by the name that a reader finds it under.
struct Reference {
  std::string tensor;
  DataType type = DataType::kUnspecified;
  Shape shape;
};

struct QuantizedEntry {
  std::string name;  // of the tensor that was quantized
  DataType input_type = DataType::kUnspecified;
  Granularity granularity;
  Reference y, scale;
  std::optional<Reference> zero_point, tensor_scale;
};

std::string QuantizedEntriesToJson(const std::vector<QuantizedEntry>& entries);
// INVALID_ARGUMENT when the text is not what QuantizedEntriesToJson makes.
absl::StatusOr<std::vector<QuantizedEntry>> QuantizedEntriesFromJson(const std::string& text);

// A quantized tensor, found.
struct QuantizedTensor {
  QuantizedEntry entry;
  Source y, scale;
  std::optional<Source> zero_point, tensor_scale;
};

// The quantized tensors of a file that quantctl wrote (for a .npy: of the set that it belongs to).
// Empty for any other file.
absl::StatusOr<std::vector<QuantizedTensor>> FindQuantizedTensors(const TensorFile& file);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_QUANTIZED_FILE_H_
