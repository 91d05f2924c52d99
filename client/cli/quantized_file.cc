#include "quantized_file.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mapped_file.h"
#include "nlohmann/json.hpp"

namespace quantd::cli {
namespace {

using Json = nlohmann::ordered_json;

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("its description of quantized tensors is damaged (", what,
                   "); give --scale, --zero_point, --type and --shape instead"));
}

Json ToJson(const Shape& shape) { return std::vector<int64_t>(shape.begin(), shape.end()); }

Json ToJson(const Reference& reference) {
  return {{"tensor", reference.tensor},
          {"type", TypeName(reference.type)},
          {"shape", ToJson(reference.shape)}};
}

bool Take(const Json& json, int64_t* value) {
  if (!json.is_number_integer()) return false;
  *value = json.get<int64_t>();
  return true;
}

bool Take(const Json& json, Shape* shape) {
  if (!json.is_array() || json.size() > kMaxRank) return false;
  for (const Json& length : json) {
    if (!length.is_number_integer()) return false;
    shape->push_back(length.get<int64_t>());
  }
  return true;
}

bool Take(const Json& json, DataType* type) {
  if (!json.is_string()) return false;
  const absl::StatusOr<DataType> parsed = ParseDataType(json.get<std::string>());
  if (parsed.ok()) *type = *parsed;
  return parsed.ok();
}

bool Take(const Json& json, Reference* reference) {
  if (!json.is_object() || !json.contains("tensor") || !json["tensor"].is_string()) return false;
  if (!json.contains("type") || !json.contains("shape")) return false;
  reference->tensor = json["tensor"].get<std::string>();
  return Take(json["type"], &reference->type) && Take(json["shape"], &reference->shape);
}

template <typename T>
bool TakeOptional(const Json& json, const char* key, std::optional<T>* value) {
  if (!json.contains(key)) return true;
  return Take(json[key], &value->emplace());
}

// Leaves *value as it is when there is no such key.
template <typename T>
bool TakeIfThere(const Json& json, const char* key, T* value) {
  return !json.contains(key) || Take(json[key], value);
}

bool Take(const Json& json, QuantizedEntry* entry) {
  if (!json.is_object() || !json.contains("y") || !json.contains("scale") ||
      !json.contains("input_type")) {
    return false;
  }
  Granularity& granularity = entry->granularity;
  return Take(json["input_type"], &entry->input_type) && Take(json["y"], &entry->y) &&
         Take(json["scale"], &entry->scale) &&
         TakeOptional(json, "zero_point", &entry->zero_point) &&
         TakeOptional(json, "tensor_scale", &entry->tensor_scale) &&
         TakeOptional(json, "axis", &granularity.axis) &&
         TakeIfThere(json, "block_size", &granularity.block_size) &&
         TakeIfThere(json, "block_shape", &granularity.block_shape);
}

// The source that a reference names: a tensor of `file`, or a .npy in its folder.
absl::StatusOr<Source> Locate(const TensorFile& file, const Reference& reference) {
  if (file.format == FileFormat::kSafetensors) {
    const StoredTensor* tensor = file.Find(reference.tensor);
    if (tensor == nullptr) {
      return Malformed(absl::StrCat("there is no tensor '", reference.tensor, "'"));
    }
    return Source::As(file, *tensor, reference.type, reference.shape);
  }
  if (reference.tensor.find('/') != std::string::npos) return Malformed("a path");
  const size_t slash = file.path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "" : file.path.substr(0, slash + 1);
  const absl::StatusOr<TensorFile> other = OpenTensorFile(folder + reference.tensor);
  if (!other.ok()) return other.status();
  if (other->format != FileFormat::kNpy) return Malformed("not a .npy");
  return Source::As(*other, other->tensors[0], reference.type, reference.shape);
}

}  // namespace

std::string QuantizedEntriesToJson(const std::vector<QuantizedEntry>& entries) {
  Json tensors = Json::object();
  for (const QuantizedEntry& entry : entries) {
    Json json = {{"input_type", TypeName(entry.input_type)}};
    if (entry.granularity.axis.has_value()) json["axis"] = *entry.granularity.axis;
    if (entry.granularity.block_size != 0) json["block_size"] = entry.granularity.block_size;
    if (!entry.granularity.block_shape.empty()) {
      json["block_shape"] = ToJson(entry.granularity.block_shape);
    }
    json["y"] = ToJson(entry.y);
    json["scale"] = ToJson(entry.scale);
    if (entry.zero_point.has_value()) json["zero_point"] = ToJson(*entry.zero_point);
    if (entry.tensor_scale.has_value()) json["tensor_scale"] = ToJson(*entry.tensor_scale);
    tensors[entry.name] = std::move(json);
  }
  const Json document = {{"version", 1}, {"tensors", std::move(tensors)}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<std::vector<QuantizedEntry>> QuantizedEntriesFromJson(const std::string& text) {
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("tensors") || !document["tensors"].is_object()) {
    return Malformed("not the JSON that quantctl writes");
  }
  if (!document.contains("version") || document["version"] != 1) {
    return Malformed("of another version");
  }
  std::vector<QuantizedEntry> entries;
  for (const auto& [name, json] : document["tensors"].items()) {
    QuantizedEntry entry;
    entry.name = name;
    if (!Take(json, &entry)) return Malformed(absl::StrCat("tensor '", name, "'"));
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::StatusOr<std::vector<QuantizedTensor>> FindQuantizedTensors(const TensorFile& file) {
  std::string text;
  if (file.format == FileFormat::kSafetensors) {
    const auto found = file.metadata.find("quantd");
    if (found == file.metadata.end()) return std::vector<QuantizedTensor>();
    text = found->second;
  } else {
    const absl::StatusOr<std::shared_ptr<const MappedFile>> sidecar = MappedFile::Open(
        absl::StrCat(file.path.substr(0, file.path.size() - 4), ".quantization.json"));
    if (absl::IsNotFound(sidecar.status())) return std::vector<QuantizedTensor>();
    if (!sidecar.ok()) return sidecar.status();
    const absl::Span<const uint8_t> bytes = (*sidecar)->bytes();
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  absl::StatusOr<std::vector<QuantizedEntry>> entries = QuantizedEntriesFromJson(text);
  const auto in_file = [&file](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(file.path, ": ", status.message()));
  };
  if (!entries.ok()) return in_file(entries.status());
  std::vector<QuantizedTensor> tensors;
  for (QuantizedEntry& entry : *entries) {
    absl::StatusOr<Source> y = Locate(file, entry.y), scale = Locate(file, entry.scale);
    if (!y.ok()) return in_file(y.status());
    if (!scale.ok()) return in_file(scale.status());
    QuantizedTensor tensor{entry, *std::move(y), *std::move(scale), {}, {}};
    const auto locate_optional = [&file](const std::optional<Reference>& reference,
                                         std::optional<Source>* source) {
      if (!reference.has_value()) return absl::OkStatus();
      absl::StatusOr<Source> found = Locate(file, *reference);
      if (!found.ok()) return found.status();
      *source = *std::move(found);
      return absl::OkStatus();
    };
    for (const absl::Status& status : {locate_optional(entry.zero_point, &tensor.zero_point),
                                       locate_optional(entry.tensor_scale, &tensor.tensor_scale)}) {
      if (!status.ok()) return in_file(status);
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace quantd::cli
