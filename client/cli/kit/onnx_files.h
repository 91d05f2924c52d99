// ONNX's files, as bytes, in plain words: only here are ONNX's messages known.
#ifndef QUANTD_CLI_KIT_ONNX_FILES_H_
#define QUANTD_CLI_KIT_ONNX_FILES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "quantd/v1/tensor.pb.h"

namespace quantd::cli {

// The only node of a model. Attributes are integers, as those of the operators are.
struct OnnxNode {
  std::string op_type;
  std::vector<std::string> inputs;  // an absent one is ""
  std::vector<std::pair<std::string, int64_t>> attributes;
};

// INVALID_ARGUMENT for bytes that are not a model, and for one that has not exactly one node.
absl::StatusOr<OnnxNode> ParseOnnxModel(const std::string& bytes);
// Of an input_N.pb or output_N.pb. INVALID_ARGUMENT for bytes that are not a tensor, and for one
// whose elements are not in raw_data.
absl::StatusOr<v1::Tensor> ParseOnnxTensor(const std::string& bytes);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_KIT_ONNX_FILES_H_
