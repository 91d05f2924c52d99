// Reads the cases of a kit: a folder written by `python -m quantd.conformance export`.
//
// A kit is not trusted: every size in it is checked before it is used.
#ifndef QUANTD_CLI_KIT_READ_KIT_H_
#define QUANTD_CLI_KIT_READ_KIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kit/case.h"
#include "nlohmann/json.hpp"

namespace quantd::cli {

// All cases of a folder, ONNX's first, sorted by name. Returns INVALID_ARGUMENT, with the file's
// name, for a file that does not follow FORMAT.md, for a folder without cases, and for a folder
// with fewer cases than its manifest.json says.
absl::StatusOr<std::vector<KitCase>> ReadKit(const std::string& folder);

// The case of a folder with a model.onnx, from test_data_set_0. `name`: that of the case.
absl::StatusOr<KitCase> ReadOnnxCase(const std::string& folder, const std::string& name);

// The cases of a .json and its .safetensors.
absl::StatusOr<std::vector<KitCase>> ReadGroup(const std::string& json_path);

// Sets the fields of a request that are not tensors. Names are those of the contract; enum values
// are without their prefix ("INT8", "BEFORE_ROUNDING"). Returns INVALID_ARGUMENT for unknown names
// and values.
absl::Status SetAttributes(const nlohmann::json& attributes, google::protobuf::Message* request);

// Whether it is an operation of the kit that servers do not have, about layouts of checkpoints.
bool IsOfLayouts(absl::string_view operation);
// An empty request of "quantize", "dequantize", "dynamic_quantize" or "quantize_embeddings".
absl::StatusOr<KitRequest> RequestOf(absl::string_view operation);
google::protobuf::Message* MessageOf(KitRequest* request);
// The tensor field with this name, to be filled. Returns INVALID_ARGUMENT if the request has none.
absl::StatusOr<v1::Tensor*> TensorField(absl::string_view name, google::protobuf::Message* request);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_KIT_READ_KIT_H_
