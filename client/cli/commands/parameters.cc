// quantctl parameters put, get and list: stored sets on a server.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "commands/commands.h"
#include "commands/presets.h"
#include "commands/ranges.h"
#include "engine/errors.h"
#include "engine/on_wire.h"
#include "files/json_reader.h"
#include "quantd/client/client.h"
#include "quantd/v1/parameters.pb.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

absl::Status Usage(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(text, "; see quantctl parameters --help"));
}

void SetTensor(DataType type, const Shape& shape, std::string bytes, v1::Tensor* to) {
  to->set_data_type(OnWire(type));
  to->mutable_shape()->Add(shape.begin(), shape.end());
  to->set_raw_data(std::move(bytes));
}

void SetTensor(const TensorView& view, v1::Tensor* to) {
  SetTensor(view.data_type, view.shape, std::string(view.bytes.begin(), view.bytes.end()), to);
}

std::string BytesOf(const TensorFile& file, const StoredTensor& tensor) {
  const absl::Span<const uint8_t> bytes = file.Bytes(tensor);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The target of a calibration, if the file contains it.
absl::Status ReadCalibration(const TensorFile& file, DataType* type, v1::QuantizeRequest* request) {
  const auto found = file.metadata.find(kCalibrationKey);
  if (found == file.metadata.end()) return absl::OkStatus();
  std::string buffer;
  DataType calibrated = DataType::kUnspecified;
  std::optional<int64_t> axis;
  JsonReader json(found->second);
  const bool good = json.Object([&](absl::string_view key) {
    absl::string_view name;
    if (key == "axis" && !request->has_axis()) return json.Integer(&axis.emplace());
    if (key != "type" || *type != DataType::kUnspecified) return json.Skip();
    if (!json.String(&name, &buffer)) return false;
    const absl::StatusOr<DataType> parsed = ParseDataType(name);
    if (parsed.ok()) calibrated = *parsed;
    return parsed.ok();
  });
  if (!good || !json.End()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path, ": ", kCalibrationKey, " is not what calibrate writes"));
  }
  if (*type == DataType::kUnspecified) *type = calibrated;
  if (axis.has_value()) request->set_axis(*axis);
  return absl::OkStatus();
}

absl::Status ReadFile(const std::string& path, DataType type, v1::QuantizeRequest* request) {
  QUANTD_ASSIGN_OR_RETURN(const TensorFile file, OpenTensorFile(path));
  QUANTD_RETURN_IF_ERROR(ReadCalibration(file, &type, request));
  QUANTD_ASSIGN_OR_RETURN(const StoredTensor* scale, FindCalibrated(file, "scale"));
  const Shape& shape = scale->shape;
  if (scale->type->data_type == DataType::kUnspecified) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": scale is ", scale->type->name, ", which is not a type of a scale"));
  }
  SetTensor(scale->type->data_type, shape, BytesOf(file, *scale), request->mutable_scale());
  const absl::StatusOr<const StoredTensor*> zero_point = FindCalibrated(file, "zero_point");
  if (!zero_point.ok()) {
    if (type != DataType::kUnspecified) request->set_output_type(OnWire(type));
    return absl::OkStatus();
  }
  if (type == DataType::kUnspecified) type = (*zero_point)->type->data_type;
  // Types without a name in files are packed, and have the scale's shape.
  SetTensor(type, shape, BytesOf(file, **zero_point), request->mutable_zero_point());
  return absl::OkStatus();
}

absl::Status FillQuantize(const Options& options, const std::string& path,
                          v1::QuantizeRequest* request) {
  const SpecFlags& flags = options.spec;
  DataType type = DataType::kUnspecified;
  if (!flags.type.empty()) {
    const absl::StatusOr<DataType> parsed = ParseDataType(flags.type);
    if (!parsed.ok()) return Usage(absl::StrCat("--type: ", parsed.status().message()));
    type = *parsed;
  }
  if (flags.axis.has_value()) request->set_axis(*flags.axis);
  request->set_block_size(flags.block_size);
  request->mutable_block_shape()->Add(flags.block_shape.begin(), flags.block_shape.end());
  if (path.empty() == flags.scale.empty()) {
    return Usage("a set for quantize is made of a FILE, or of --scale");
  }
  if (!path.empty()) return ReadFile(path, type, request);
  QUANTD_ASSIGN_OR_RETURN(const Operand scale,
                          ParseOperand(flags.scale, "scale", DataType::kFloat, true));
  SetTensor(scale.view, request->mutable_scale());
  if (flags.zero_point.empty()) {
    request->set_output_type(OnWire(type));
    return absl::OkStatus();
  }
  if (type == DataType::kUnspecified) type = DataType::kUint8;
  QUANTD_ASSIGN_OR_RETURN(const Operand zero_point,
                          ParseOperand(flags.zero_point, "zero_point", type, false));
  SetTensor(zero_point.view, request->mutable_zero_point());
  return absl::OkStatus();
}

absl::Status FillEmbeddings(const Options& options, const std::string& path,
                            v1::QuantizeEmbeddingsRequest* request) {
  const EmbeddingFlags& flags = options.embeddings;
  if (flags.preset.empty()) return Usage("--for=embeddings needs a --preset");
  QUANTD_ASSIGN_OR_RETURN(const QuantizeEmbeddingsParameters preset, PresetOf(flags.preset));
  request->set_recipe(OnWire(preset.recipe));
  request->set_output_type(OnWire(preset.output_type));
  request->set_bit_order(OnWire(preset.bit_order));
  request->set_bit_threshold(OnWire(preset.bit_threshold));
  request->set_signed_bits(OnWire(preset.signed_bits));
  request->set_dimensions(flags.dimensions);
  request->set_normalize(flags.normalize);
  if (path.empty()) return absl::OkStatus();
  Input ranges;
  QUANTD_RETURN_IF_ERROR(OpenRanges(path, ScratchPath(), &ranges));
  SetTensor(ranges.view, request->mutable_ranges());
  return absl::OkStatus();
}

absl::Status Failed(const absl::Status& status, const std::string& address, const char* what) {
  return OperationError(ServerError(status, address), what, "");
}

absl::Status Put(const Options& options, client::Client& client, const std::string& address) {
  const std::vector<std::string>& words = options.stored.words;
  if (words.empty() || words.size() > 2) return Usage("put takes a NAME, and a FILE at most");
  const std::string path = words.size() == 2 ? words[1] : "";
  v1::ParameterSet set;
  QUANTD_RETURN_IF_ERROR(options.stored.kind == "embeddings"
                             ? FillEmbeddings(options, path, set.mutable_quantize_embeddings())
                             : FillQuantize(options, path, set.mutable_quantize()));
  const absl::StatusOr<std::string> reference = client.PutParameters(words[0], set);
  if (!reference.ok()) return Failed(reference.status(), address, "store the parameters");
  if (options.json) {
    std::fputs(Dump({{"reference", *reference}}).c_str(), stdout);
  } else {
    std::printf("%s\n", reference->c_str());
  }
  return absl::OkStatus();
}

absl::Status Get(const Options& options, client::Client& client, const std::string& address) {
  if (options.stored.words.size() != 1) return Usage("get takes one REFERENCE");
  if (options.output.empty()) return Usage("get needs a file to write to, -o FILE");
  QUANTD_RETURN_IF_ERROR(CheckFiles(options, OutputsOf({options.output})));
  const absl::StatusOr<v1::GetParametersResponse> response =
      client.GetParameters(options.stored.words[0]);
  if (!response.ok()) return Failed(response.status(), address, "read the parameters");
  const std::string bytes = response->parameters().SerializeAsString();
  OutputFile file;
  QUANTD_RETURN_IF_ERROR(file.Create(options.output, bytes.size(), options.force));
  std::copy(bytes.begin(), bytes.end(), file.bytes().begin());
  QUANTD_RETURN_IF_ERROR(file.Sync());
  QUANTD_RETURN_IF_ERROR(file.Publish());
  if (options.json) {
    std::fputs(Dump({{"reference", response->reference()}, {"output", options.output}}).c_str(),
               stdout);
  } else if (!options.quiet) {
    std::printf("%s\nwrote %s\n", response->reference().c_str(), options.output.c_str());
  }
  return absl::OkStatus();
}

absl::Status List(const Options& options, client::Client& client, const std::string& address) {
  if (options.stored.words.size() > 1) return Usage("list takes a PREFIX at most");
  const std::string prefix = options.stored.words.empty() ? "" : options.stored.words[0];
  const absl::StatusOr<std::vector<std::string>> references = client.ListParameters(prefix);
  if (!references.ok()) return Failed(references.status(), address, "list the parameters");
  if (options.json) {
    std::fputs(Dump({{"references", *references}}).c_str(), stdout);
  } else {
    for (const std::string& reference : *references) std::printf("%s\n", reference.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunParameters(const Options& options) {
  const std::string& action = options.stored.action;
  if (action != "put" && action != "get" && action != "list") {
    return Usage(absl::StrCat("parameters ", action, action.empty() ? "" : " ",
                              "is not a command; put, get and list are"));
  }
  QUANTD_ASSIGN_OR_RETURN(const std::string address, AddressOf(options));
  client::Client client(address, ClientOptionsOf(options, absl::Seconds(options.timeout)));
  if (!client.status().ok()) return OptionsError(client.status());
  if (action == "put") return Put(options, client, address);
  if (action == "get") return Get(options, client, address);
  return List(options, client, address);
}

}  // namespace quantd::cli
