// A .json with many cases, and the .safetensors beside it with their tensors.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "files/mapped_file.h"
#include "files/tensor_file.h"
#include "kit/read_kit.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

using Json = nlohmann::json;
using Tensors = absl::flat_hash_map<std::string, v1::Tensor>;

constexpr int kSchema = 1;

// A tensor with the type and shape in the .json, because a .safetensors supports few of the types.
absl::StatusOr<v1::Tensor> TensorOf(const Json& what, absl::Span<const uint8_t> bytes) {
  v1::Tensor tensor;
  v1::DataType type;
  if (!v1::DataType_Parse(absl::StrCat("DATA_TYPE_", what.at("type").get<std::string>()), &type)) {
    return absl::InvalidArgumentError("has a type that is not known here");
  }
  tensor.set_data_type(type);
  for (const Json& length : what.at("shape")) tensor.add_shape(length.get<int64_t>());
  tensor.set_raw_data(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return tensor;
}

absl::StatusOr<Tensors> ReadTensors(const Json& described, const std::string& path) {
  QUANTD_ASSIGN_OR_RETURN(const TensorFile file, OpenTensorFile(path));
  Tensors result;
  for (const StoredTensor& stored : file.tensors) {
    absl::StatusOr<v1::Tensor> tensor = TensorOf(described.at(stored.name), file.Bytes(stored));
    if (!tensor.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", stored.name, " ", tensor.status().message()));
    }
    result[stored.name] = *std::move(tensor);
  }
  return result;
}

absl::StatusOr<v1::Tensor> Find(const Tensors& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no tensor ", name));
  }
  return found->second;
}

ReportFigures FiguresOf(const Json& report) {
  ReportFigures figures;
  const auto whole = [&](const char* name, std::optional<int64_t>* to) {
    if (report.contains(name)) *to = report.at(name).get<int64_t>();
  };
  const auto real = [&](const char* name, std::optional<double>* to) {
    if (report.contains(name)) *to = report.at(name).get<double>();
  };
  whole("saturated_elements", &figures.saturated_elements);
  whole("non_finite_elements", &figures.non_finite_elements);
  real("mean_squared_error", &figures.mean_squared_error);
  real("max_absolute_error", &figures.max_absolute_error);
  real("sqnr_db", &figures.sqnr_db);
  return figures;
}

absl::StatusOr<KitCase> CaseOf(const Json& json, const std::string& family,
                               const Tensors& tensors) {
  KitCase result;
  result.name = absl::StrCat(family, "/", json.at("name").get<std::string>());
  result.rule = json.at("rule").get<std::string>();
  const std::string operation = json.at("operation").get<std::string>();
  if (IsOfLayouts(operation)) return result;
  QUANTD_ASSIGN_OR_RETURN(result.request, RequestOf(operation));
  google::protobuf::Message* const message = MessageOf(&*result.request);
  if (json.contains("attributes")) {
    QUANTD_RETURN_IF_ERROR(SetAttributes(json.at("attributes"), message));
  }
  for (const auto& [name, tensor] : json.at("inputs").items()) {
    QUANTD_ASSIGN_OR_RETURN(v1::Tensor* const field, TensorField(name, message));
    QUANTD_ASSIGN_OR_RETURN(*field, Find(tensors, tensor.get<std::string>()));
  }
  KitAnswer answer;
  answer.refused = json.contains("refused");
  if (!answer.refused) {
    for (const auto& [name, tensor] : json.at("outputs").items()) {
      QUANTD_ASSIGN_OR_RETURN(answer.tensors[name], Find(tensors, tensor.get<std::string>()));
    }
  }
  if (json.contains("report")) answer.report = FiguresOf(json.at("report"));
  result.wanted.push_back(std::move(answer));
  return result;
}

}  // namespace

absl::StatusOr<std::vector<KitCase>> ReadGroup(const std::string& json_path) {
  QUANTD_ASSIGN_OR_RETURN(const auto mapped, MappedFile::Open(json_path));
  const auto wrong = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(json_path, ": ", why));
  };
  const auto bytes = mapped->bytes();
  const Json document =
      Json::parse(bytes.begin(), bytes.end(), nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return wrong("is not a JSON object");
  std::vector<KitCase> result;
  // nlohmann reports missing members and those of another kind only by exceptions.
  try {
    if (document.at("schema").get<int>() != kSchema) return wrong("schema is not 1");
    const std::string family = document.at("family").get<std::string>();
    const Json& cases = document.at("cases");
    Tensors tensors;  // for layouts they may have types that no request has
    if (!std::all_of(cases.begin(), cases.end(), [](const Json& json) {
          return IsOfLayouts(json.at("operation").get<std::string>());
        })) {
      absl::StatusOr<Tensors> read =
          ReadTensors(document.at("tensors"),
                      absl::StrCat(absl::StripSuffix(json_path, ".json"), ".safetensors"));
      if (!read.ok()) return wrong(read.status().message());
      tensors = *std::move(read);
    }
    for (const Json& json : cases) {
      absl::StatusOr<KitCase> one = CaseOf(json, family, tensors);
      if (!one.ok()) {
        return wrong(absl::StrCat("case ", result.size(), ": ", one.status().message()));
      }
      result.push_back(*std::move(one));
    }
  } catch (const Json::exception& error) {
    return wrong(error.what());
  }
  return result;
}

}  // namespace quantd::cli
