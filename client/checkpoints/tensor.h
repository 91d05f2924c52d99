// A tensor in a checkpoint's file, independent of the file's format.
#ifndef QUANTD_CHECKPOINTS_TENSOR_H_
#define QUANTD_CHECKPOINTS_TENSOR_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "quantd/data_type.h"
#include "quantd/shape.h"

namespace quantd::checkpoints {

struct Tensor {
  std::string name;
  // The name in the file's format, "BF16" or "Q8_0"; the text has static storage.
  absl::string_view dtype;
  DataType type = DataType::kUnspecified;  // FLOAT, FLOAT16 or BFLOAT16; kUnspecified for others
  int ggml_type = -1;                      // of a .gguf
  Shape shape;                             // outermost dimension first
  uint64_t offset = 0;                     // in the file
  uint64_t bytes = 0;
};

// The type of floats that can be converted; kUnspecified for any other dtype.
inline DataType FloatType(absl::string_view dtype) {
  if (dtype == "F32") return DataType::kFloat;
  if (dtype == "F16") return DataType::kFloat16;
  return dtype == "BF16" ? DataType::kBfloat16 : DataType::kUnspecified;
}

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_TENSOR_H_
