#include "kit/onnx_files.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "quantd/conformance/onnx_subset.pb.h"

namespace quantd::cli {

absl::StatusOr<OnnxNode> ParseOnnxModel(const std::string& bytes) {
  conformance::onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) return absl::InvalidArgumentError("is not an ONNX model");
  if (model.graph().node_size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", model.graph().node_size(), " nodes, must have one"));
  }
  const conformance::onnx::NodeProto& node = model.graph().node(0);
  OnnxNode result;
  result.op_type = node.op_type();
  result.inputs.assign(node.input().begin(), node.input().end());
  for (const auto& attribute : node.attribute()) {
    result.attributes.emplace_back(attribute.name(), attribute.i());
  }
  return result;
}

absl::StatusOr<v1::Tensor> ParseOnnxTensor(const std::string& bytes) {
  conformance::onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes)) return absl::InvalidArgumentError("is not an ONNX tensor");
  if (proto.float_data_size() > 0 || proto.int32_data_size() > 0) {
    return absl::InvalidArgumentError("has no raw_data, in which the kit has its tensors");
  }
  v1::Tensor tensor;
  tensor.set_data_type(static_cast<v1::DataType>(proto.data_type()));
  tensor.mutable_shape()->CopyFrom(proto.dims());
  tensor.set_raw_data(std::move(*proto.mutable_raw_data()));
  return tensor;
}

}  // namespace quantd::cli
