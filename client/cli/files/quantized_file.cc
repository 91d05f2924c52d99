#include "files/quantized_file.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "files/mapped_file.h"
#include "nlohmann/json.hpp"

namespace quantd::cli {
namespace {

using Json = nlohmann::json;  // to be read: finds a name among many
using OrderedJson = nlohmann::ordered_json;
using TensorsByName = absl::flat_hash_map<absl::string_view, const StoredTensor*>;

absl::Status MalformedDescription(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("its description of quantized tensors is damaged (", what,
                   "); give --scale, --zero_point, --type and --shape instead"));
}

OrderedJson ToJson(const Shape& shape) { return std::vector<int64_t>(shape.begin(), shape.end()); }

OrderedJson ToJson(const Reference& reference) {
  return {{"tensor", reference.tensor},
          {"type", TypeName(reference.type)},
          {"shape", ToJson(reference.shape)}};
}

// The readers below throw Json::exception where the text is not what it should be.
int64_t ToInteger(const Json& json) {
  // at() of a number throws what a wrong type does.
  return json.is_number_integer() ? json.get<int64_t>() : json.at("").get<int64_t>();
}

Shape ToShape(const Json& json) {
  Shape shape;
  for (const Json& length : json.get_ref<const Json::array_t&>()) {
    if (shape.size() == kMaxRank) return {-1};  // no tensor has it
    shape.push_back(ToInteger(length));
  }
  return shape;
}

DataType ToType(const Json& json) {
  return ParseDataType(json.get_ref<const std::string&>()).value_or(DataType::kUnspecified);
}

Reference ToReference(const Json& json) {
  return {json.at("tensor").get<std::string>(), ToType(json.at("type")), ToShape(json.at("shape"))};
}

QuantizedEntry ToEntry(const std::string& name, const Json& json) {
  QuantizedEntry entry;
  entry.name = name;
  entry.input_type = ToType(json.at("input_type"));
  entry.was_float64 = json.value("original_type", "") == "float64";
  Granularity& granularity = entry.granularity;
  if (json.contains("axis")) granularity.axis = ToInteger(json["axis"]);
  if (json.contains("block_size")) granularity.block_size = ToInteger(json["block_size"]);
  if (json.contains("block_shape")) granularity.block_shape = ToShape(json["block_shape"]);
  entry.y = ToReference(json.at("y"));
  entry.scale = ToReference(json.at("scale"));
  if (json.contains("zero_point")) entry.zero_point = ToReference(json["zero_point"]);
  if (json.contains("tensor_scale")) entry.tensor_scale = ToReference(json["tensor_scale"]);
  return entry;
}

bool HasTypes(const QuantizedEntry& entry) {
  for (const Reference& part : entry.parts()) {
    if (part.type == DataType::kUnspecified) return false;
  }
  return entry.input_type != DataType::kUnspecified;
}

// The source that a reference names: a tensor of `file`, or a .npy in its folder.
absl::StatusOr<Source> Locate(const TensorFile& file, const TensorsByName& tensors,
                              const Reference& reference) {
  if (file.format == FileFormat::kSafetensors) {
    const auto tensor = tensors.find(reference.tensor);
    if (tensor == tensors.end()) {
      return MalformedDescription(absl::StrCat("there is no tensor '", reference.tensor, "'"));
    }
    return Source::As(file, *tensor->second, reference.type, reference.shape);
  }
  if (reference.tensor.find('/') != std::string::npos) return MalformedDescription("a path");
  const size_t slash = file.path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "" : file.path.substr(0, slash + 1);
  const absl::StatusOr<TensorFile> other = OpenTensorFile(folder + reference.tensor);
  if (!other.ok()) return other.status();
  if (other->format != FileFormat::kNpy) return MalformedDescription("not a .npy");
  return Source::As(*other, other->tensors[0], reference.type, reference.shape);
}

absl::StatusOr<QuantizedTensor> Locate(const TensorFile& file, const TensorsByName& tensors,
                                       QuantizedEntry entry) {
  std::vector<Source> sources;
  for (const Reference& part : entry.parts()) {
    absl::StatusOr<Source> source = Locate(file, tensors, part);
    if (!source.ok()) return source.status();
    sources.push_back(*std::move(source));
  }
  QuantizedTensor tensor{std::move(entry), sources[0], sources[1], {}, {}};
  size_t next = 2;
  if (tensor.entry.zero_point.has_value()) tensor.zero_point = sources[next++];
  if (tensor.entry.tensor_scale.has_value()) tensor.tensor_scale = sources[next];
  return tensor;
}

}  // namespace

std::vector<Reference> QuantizedEntry::parts() const {
  std::vector<Reference> all = {y, scale};
  if (zero_point.has_value()) all.push_back(*zero_point);
  if (tensor_scale.has_value()) all.push_back(*tensor_scale);
  return all;
}

std::string QuantizedEntriesToJson(const std::vector<QuantizedEntry>& entries) {
  OrderedJson tensors = OrderedJson::object();
  // ordered_json looks at all names for each.
  auto& members = tensors.get_ref<OrderedJson::object_t&>();
  for (const QuantizedEntry& entry : entries) {
    OrderedJson json = {{"input_type", TypeName(entry.input_type)}};
    if (entry.was_float64) json["original_type"] = "float64";
    if (entry.granularity.axis.has_value()) json["axis"] = *entry.granularity.axis;
    if (entry.granularity.block_size != 0) json["block_size"] = entry.granularity.block_size;
    if (!entry.granularity.block_shape.empty()) {
      json["block_shape"] = ToJson(entry.granularity.block_shape);
    }
    json["y"] = ToJson(entry.y);
    json["scale"] = ToJson(entry.scale);
    if (entry.zero_point.has_value()) json["zero_point"] = ToJson(*entry.zero_point);
    if (entry.tensor_scale.has_value()) json["tensor_scale"] = ToJson(*entry.tensor_scale);
    members.push_back({entry.name, std::move(json)});
  }
  const OrderedJson document = {{"version", 1}, {"tensors", std::move(tensors)}};
  return document.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

absl::StatusOr<std::vector<QuantizedEntry>> QuantizedEntriesFromJson(const std::string& text) {
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("tensors") || !document["tensors"].is_object()) {
    return MalformedDescription("not the JSON that quantctl writes");
  }
  if (!document.contains("version") || document["version"] != 1) {
    return MalformedDescription("of another version");
  }
  std::vector<QuantizedEntry> entries;
  for (const auto& [name, json] : document["tensors"].items()) {
    try {
      entries.push_back(ToEntry(name, json));
    } catch (const Json::exception&) {
      return MalformedDescription(absl::StrCat("tensor '", name, "'"));
    }
    if (!HasTypes(entries.back()))
      return MalformedDescription(absl::StrCat("types of tensor '", name, "'"));
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
    const absl::StatusOr<std::shared_ptr<const MappedFile>> sidecar =
        MappedFile::Open(absl::StrCat(NpyStem(file.path), ".quantization.json"));
    if (absl::IsNotFound(sidecar.status())) return std::vector<QuantizedTensor>();
    if (!sidecar.ok()) return sidecar.status();
    const absl::Span<const uint8_t> bytes = (*sidecar)->bytes();
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  const auto in_file = [&file](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(file.path, ": ", status.message()));
  };
  absl::StatusOr<std::vector<QuantizedEntry>> entries = QuantizedEntriesFromJson(text);
  if (!entries.ok()) return in_file(entries.status());
  TensorsByName by_name;
  for (const StoredTensor& tensor : file.tensors) by_name[tensor.name] = &tensor;
  std::vector<QuantizedTensor> tensors;
  for (QuantizedEntry& entry : *entries) {
    absl::StatusOr<QuantizedTensor> tensor = Locate(file, by_name, std::move(entry));
    if (!tensor.ok()) return in_file(tensor.status());
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

absl::string_view NpyStem(absl::string_view path) { return path.substr(0, path.size() - 4); }

}  // namespace quantd::cli
