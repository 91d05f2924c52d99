// The description of quantized tensors in a file: which tensors belong together, their types and
// shapes, and their blocks. client/FORMAT.md defines it.
#ifndef QUANTD_CLI_FILES_QUANTIZED_FILE_H_
#define QUANTD_CLI_FILES_QUANTIZED_FILE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "files/tensor_file.h"
#include "quantd/parameters.h"

namespace quantd::cli {

// The most quantized tensors of a file. It bounds the memory, because each takes some 7 KB to
// quantize and 5 KB to dequantize. The experts of one model are 44,544.
inline constexpr size_t kMaxQuantizedTensors = 100'000;

// The name under which readers find a tensor.
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

  // The existing parts, y first.
  std::vector<Reference> parts() const;
};

std::string QuantizedEntriesToJson(const std::vector<QuantizedEntry>& entries);
// Sorted by name. Returns INVALID_ARGUMENT if the text was not made by QuantizedEntriesToJson, or
// has more than kMaxQuantizedTensors entries.
absl::StatusOr<std::vector<QuantizedEntry>> QuantizedEntriesFromJson(absl::string_view text);

// A quantized tensor in a file.
struct QuantizedTensor {
  QuantizedEntry entry;
  Source y, scale;
  std::optional<Source> zero_point, tensor_scale;
};

// The quantized tensors of a file (for a .npy: of its set). Empty for a file without a
// description.
absl::StatusOr<std::vector<QuantizedTensor>> FindQuantizedTensors(const TensorFile& file);

// The path of a .npy without its extension.
absl::string_view NpyStem(absl::string_view path);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_QUANTIZED_FILE_H_
