// Reads the cases of a kit: the folder that `python -m quantd.conformance export` wrote.
//
// A kit is input like any other: every size in it is checked before it is believed.
#ifndef QUANTD_CLI_KIT_READ_KIT_H_
#define QUANTD_CLI_KIT_READ_KIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kit/case.h"
#include "nlohmann/json.hpp"

namespace quantd::cli {

// All cases of a folder, ONNX's first, in the order of their names. INVALID_ARGUMENT, naming the
// file, for one that is not as FORMAT.md has it; for a folder without a case; and for one that has
// fewer than its manifest.json says.
absl::StatusOr<std::vector<KitCase>> ReadKit(const std::string& folder);

// A folder with a model.onnx, the case of its test_data_set_0. `name`: of the case.
absl::StatusOr<KitCase> ReadOnnxCase(const std::string& folder, const std::string& name);

// The cases of a .json and the .safetensors beside it.
absl::StatusOr<std::vector<KitCase>> ReadGroup(const std::string& json_path);

// Sets the fields of a request that are not tensors. Names are the contract's, enum values without
// their prefix ("INT8", "BEFORE_ROUNDING"). INVALID_ARGUMENT for names and values that do not
// exist.
absl::Status SetAttributes(const nlohmann::json& attributes, google::protobuf::Message* request);

// Whether it is an operation of the kit that servers do not have: about layouts of checkpoints.
bool IsOfLayouts(absl::string_view operation);
// An empty request of "quantize", "dequantize", "dynamic_quantize" or "quantize_embeddings".
absl::StatusOr<KitRequest> RequestOf(absl::string_view operation);
google::protobuf::Message* MessageOf(KitRequest* request);
// The field of a request that is a tensor, to be filled. INVALID_ARGUMENT when it has none.
absl::StatusOr<v1::Tensor*> TensorField(absl::string_view name, google::protobuf::Message* request);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_KIT_READ_KIT_H_
