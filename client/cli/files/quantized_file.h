// The description of quantized tensors in a file: which tensors belong together, of which types and
// shapes they are, and with which blocks they were made. client/FORMAT.md has all of it.
#ifndef QUANTD_CLI_FILES_QUANTIZED_FILE_H_
#define QUANTD_CLI_FILES_QUANTIZED_FILE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "files/source.h"
#include "files/tensor_file.h"
#include "quantd/parameters.h"

namespace quantd::cli {

// Most quantized tensors of a file: what is kept of each, some 7 KB to quantize and 5 KB to
// dequantize, bounds the memory. The experts of one model are 44,544.
inline constexpr size_t kMaxQuantizedTensors = 100'000;

// A tensor by the name that a reader finds it under.
struct Reference {
  std::string tensor;
  DataType type = DataType::kUnspecified;
  Shape shape;
};

struct QuantizedEntry {
  std::string name;  // of the tensor that was quantized
  DataType input_type = DataType::kUnspecified;
  bool was_float64 = false;  // and was rounded to input_type
  Granularity granularity;
  Reference y, scale;
  std::optional<Reference> zero_point, tensor_scale;

  // Those that are there, y first.
  std::vector<Reference> parts() const;
};

std::string QuantizedEntriesToJson(const std::vector<QuantizedEntry>& entries);
// By name. INVALID_ARGUMENT when the text is not what QuantizedEntriesToJson makes, and for more
// than kMaxQuantizedTensors.
absl::StatusOr<std::vector<QuantizedEntry>> QuantizedEntriesFromJson(absl::string_view text);

// A quantized tensor, found.
struct QuantizedTensor {
  QuantizedEntry entry;
  Source y, scale;
  std::optional<Source> zero_point, tensor_scale;
};

// The quantized tensors of a file (for a .npy: of the set that it belongs to). Empty for a file
// without a description.
absl::StatusOr<std::vector<QuantizedTensor>> FindQuantizedTensors(const TensorFile& file);

// The path of a .npy without its extension.
absl::string_view NpyStem(absl::string_view path);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_QUANTIZED_FILE_H_
