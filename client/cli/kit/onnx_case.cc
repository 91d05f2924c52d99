// An ONNX backend test: model.onnx, rule.txt, test_data_set_0/input_N.pb and output_N.pb; if the
// specification leaves the result open, also answers/NAME/output_N.pb or refused.txt.
#include <sys/stat.h>

#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "files/mapped_file.h"
#include "kit/onnx_files.h"
#include "kit/read_kit.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

constexpr size_t kMaxFile = 64 << 20;

struct Operator {
  absl::string_view onnx, ours;
  std::array<absl::string_view, 3> inputs, outputs;
};
constexpr Operator kOperators[] = {
    {"QuantizeLinear", "quantize", {"x", "scale", "zero_point"}, {"y"}},
    {"DequantizeLinear", "dequantize", {"x", "scale", "zero_point"}, {"y"}},
    {"DynamicQuantizeLinear", "dynamic_quantize", {"x"}, {"y", "y_scale", "y_zero_point"}},
};

absl::StatusOr<std::string> Contents(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && info.st_size == 0) return std::string();
  QUANTD_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  const auto bytes = file->bytes();
  if (bytes.size() > kMaxFile) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", bytes.size(), " bytes, at most ", kMaxFile, " are read"));
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

// The result of parsing a file; an error gets the file's name.
template <typename Parser>
auto ParsedFile(const std::string& path, Parser parser)
    -> decltype(parser(std::declval<const std::string&>())) {
  QUANTD_ASSIGN_OR_RETURN(const std::string bytes, Contents(path));
  auto parsed = parser(bytes);
  if (parsed.ok()) return parsed;
  return absl::InvalidArgumentError(absl::StrCat(path, " ", parsed.status().message()));
}

absl::StatusOr<v1::Tensor> ReadTensor(const std::string& path) {
  return ParsedFile(path, ParseOnnxTensor);
}

absl::Status ReadOutputs(const std::string& folder, const Operator& op, KitAnswer* answer) {
  for (size_t i = 0; i < op.outputs.size() && !op.outputs[i].empty(); ++i) {
    QUANTD_ASSIGN_OR_RETURN(v1::Tensor tensor,
                            ReadTensor(absl::StrCat(folder, "/output_", i, ".pb")));
    answer->tensors[std::string(op.outputs[i])] = std::move(tensor);
  }
  return absl::OkStatus();
}

// ONNX's attributes are fields of the request, except for output_dtype.
absl::Status SetAttribute(const std::string& name, int64_t value,
                          google::protobuf::Message* request) {
  nlohmann::json fields;
  if (name == "saturate") {
    fields[name] = value != 0;
  } else if (name == "output_dtype" || name == "precision") {
    if (value == 0) return absl::OkStatus();
    const std::string type =
        value == static_cast<int>(value) ? v1::DataType_Name(static_cast<v1::DataType>(value)) : "";
    fields[name == "precision" ? name : "output_type"] =
        std::string(absl::StripPrefix(type, "DATA_TYPE_"));
  } else {
    fields[name] = value;
  }
  return SetAttributes(fields, request);
}

absl::StatusOr<const Operator*> ReadModel(const std::string& folder, KitCase* kit_case) {
  QUANTD_ASSIGN_OR_RETURN(const OnnxNode node, ParsedFile(folder + "/model.onnx", ParseOnnxModel));
  const Operator* op = nullptr;
  for (const Operator& known : kOperators) op = known.onnx == node.op_type ? &known : op;
  if (op == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("operator ", node.op_type, " is not known here"));
  }
  kit_case->request = *RequestOf(op->ours);
  google::protobuf::Message* const request = MessageOf(&*kit_case->request);
  for (const auto& [name, value] : node.attributes) {
    QUANTD_RETURN_IF_ERROR(SetAttribute(name, value, request));
  }
  int file = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].empty()) continue;
    if (i >= op->inputs.size() || op->inputs[i].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("model.onnx has ", node.inputs.size(), " inputs"));
    }
    QUANTD_ASSIGN_OR_RETURN(
        v1::Tensor tensor,
        ReadTensor(absl::StrCat(folder, "/test_data_set_0/input_", file++, ".pb")));
    QUANTD_ASSIGN_OR_RETURN(v1::Tensor* const field, TensorField(op->inputs[i], request));
    *field = std::move(tensor);
  }
  return op;
}

}  // namespace

absl::StatusOr<KitCase> ReadOnnxCase(const std::string& folder, const std::string& name) {
  KitCase result;
  result.name = name;
  QUANTD_ASSIGN_OR_RETURN(const Operator* op, ReadModel(folder, &result));
  result.rule = std::string(op->onnx);
  if (Exists(folder + "/rule.txt")) {
    QUANTD_ASSIGN_OR_RETURN(const std::string text, Contents(folder + "/rule.txt"));
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      if (absl::ConsumePrefix(&line, "rule: ")) {
        result.rule = std::string(line);
      } else if (absl::ConsumePrefix(&line, "answer: ")) {
        KitAnswer answer;
        answer.name = std::string(line.substr(0, line.find(' ')));
        const std::string kept = absl::StrCat(folder, "/answers/", answer.name);
        answer.refused = Exists(kept + "/refused.txt");
        if (!answer.refused) {
          QUANTD_RETURN_IF_ERROR(ReadOutputs(kept, *op, &answer));
        }
        result.wanted.push_back(std::move(answer));
      }
    }
  }
  result.open = !result.wanted.empty();
  if (!result.open) {
    KitAnswer answer;
    QUANTD_RETURN_IF_ERROR(ReadOutputs(folder + "/test_data_set_0", *op, &answer));
    result.wanted.push_back(std::move(answer));
  }
  return result;
}

}  // namespace quantd::cli
