// Converts ONNX's files to plain structs. Only this file uses ONNX's messages.
#ifndef QUANTD_CLI_KIT_ONNX_FILES_H_
#define QUANTD_CLI_KIT_ONNX_FILES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "quantd/v1/tensor.pb.h"

namespace quantd::cli {

// The only node of a model. All attributes of these operators are integers.
struct OnnxNode {
  std::string op_type;
  std::vector<std::string> inputs;  // "" for an absent one
  std::vector<std::pair<std::string, int64_t>> attributes;
};

// Returns INVALID_ARGUMENT if the bytes are not a model, or a model without exactly one node.
absl::StatusOr<OnnxNode> ParseOnnxModel(const std::string& bytes);
// Parses an input_N.pb or output_N.pb. Returns INVALID_ARGUMENT if the bytes are not a tensor, or
// its elements are not in raw_data.
absl::StatusOr<v1::Tensor> ParseOnnxTensor(const std::string& bytes);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_KIT_ONNX_FILES_H_
