#include "files/quantized_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "files/json_reader.h"
#include "files/mapped_file.h"
#include "nlohmann/json.hpp"
#include "status_macros.h"

namespace quantd::cli {
namespace {

constexpr uint64_t kMaxSidecar = 25'000'000;

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

// Whether all types are set, and the first is an input type of quantize.
bool HasTypes(const QuantizedEntry& entry) {
  for (const Reference& part : entry.parts()) {
    if (part.type == DataType::kUnspecified) return false;
  }
  const DataType input = entry.input_type;
  return input == DataType::kFloat || input == DataType::kFloat16 || input == DataType::kBfloat16 ||
         input == DataType::kInt32;
}

// Reads a description one value at a time: contents other than the entries take no memory.
class DescriptionReader {
 public:
  explicit DescriptionReader(absl::string_view text) : text_(text), json_(text) {}

  absl::StatusOr<std::vector<QuantizedEntry>> Run() {
    if (!HasVersion()) return status_;
    const bool good = json_.Object([this](absl::string_view key) {
      return key == "tensors" ? json_.Object([this](absl::string_view name) { return Take(name); })
                              : json_.Skip();
    });
    if (!status_.ok()) return status_;
    if (!good) return MalformedDescription(absl::StrCat("byte ", json_.position()));
    // They are sorted by name, whatever their order in the text.
    std::sort(entries_.begin(), entries_.end(),
              [](const QuantizedEntry& a, const QuantizedEntry& b) { return a.name < b.name; });
    for (size_t i = 1; i < entries_.size(); ++i) {
      if (entries_[i - 1].name != entries_[i].name) continue;
      return MalformedDescription(absl::StrCat("tensor '", entries_[i].name, "' twice"));
    }
    return std::move(entries_);
  }

 private:
  using Member = absl::FunctionRef<bool(absl::string_view key)>;

  // Whether it has the supported version, and is valid JSON.
  bool HasVersion() {
    JsonReader json(text_);
    bool once = true, has_version = false, has_tensors = false;
    uint64_t version = 0;
    const bool good = json.Object([&](absl::string_view key) {
      if (key == "version") {
        once = once && !std::exchange(has_version, true);
        return json.Next() == '0' ? json.Unsigned(&version) : json.Skip();
      }
      if (key == "tensors") {
        once = once && !std::exchange(has_tensors, true);
        if (json.Next() != '{') return false;
      }
      return json.Skip();
    });
    if (!good || !json.End() || !has_tensors || !once) {
      status_ = MalformedDescription("not the JSON that quantctl writes");
    } else if (version != 1) {
      status_ = MalformedDescription("of another version");
    }
    return status_.ok();
  }

  // An object in which each of `keys` occurs once; `member` reads their values.
  bool Members(absl::Span<const absl::string_view> keys, Member member) {
    uint32_t seen = 0;
    return json_.Object([&](absl::string_view key) {
      const auto at = std::find(keys.begin(), keys.end(), key);
      if (at == keys.end()) return json_.Skip();
      const uint32_t bit = 1u << (at - keys.begin());
      if ((seen & bit) != 0) return false;
      seen |= bit;
      return member(key);
    });
  }

  bool Take(absl::string_view name) {
    if (entries_.size() == kMaxQuantizedTensors) {
      status_ = absl::InvalidArgumentError(absl::StrCat(
          "its description has more than ", kMaxQuantizedTensors, " quantized tensors"));
      return false;
    }
    QuantizedEntry& entry = entries_.emplace_back();
    entry.name = std::string(name);
    std::string original;
    bool has_y = false, has_scale = false;
    constexpr std::array<absl::string_view, 9> kKeys = {
        "input_type", "original_type", "axis",       "block_size",  "block_shape",
        "y",          "scale",         "zero_point", "tensor_scale"};
    const bool good = Members(kKeys, [&](absl::string_view key) {
      if (key == "input_type") return ToType(&entry.input_type);
      if (key == "original_type") return ToText(&original);
      if (key == "axis") return json_.Integer(&entry.granularity.axis.emplace());
      if (key == "block_size") return json_.Integer(&entry.granularity.block_size);
      if (key == "block_shape") return ToShape(&entry.granularity.block_shape);
      if (key == "y") return (has_y = true) && ToReference(&entry.y);
      if (key == "scale") return (has_scale = true) && ToReference(&entry.scale);
      std::optional<Reference>& part = key == "zero_point" ? entry.zero_point : entry.tensor_scale;
      return ToReference(&part.emplace());
    });
    entry.was_float64 = original == "float64";
    if (!status_.ok()) return false;
    if (!good || !has_y || !has_scale) return Damaged("tensor", name);
    return HasTypes(entry) || Damaged("types of tensor", name);
  }

  bool ToReference(Reference* reference) {
    constexpr std::array<absl::string_view, 3> kKeys = {"tensor", "type", "shape"};
    size_t members = 0;
    return Members(kKeys,
                   [&](absl::string_view key) {
                     ++members;
                     if (key == "tensor") return ToText(&reference->tensor);
                     return key == "type" ? ToType(&reference->type) : ToShape(&reference->shape);
                   }) &&
           members == kKeys.size();
  }

  bool ToShape(Shape* shape) {
    const bool good = json_.Array([&] {
      return shape->size() < static_cast<size_t>(kMaxRank) && json_.Integer(&shape->emplace_back());
    });
    if (!good) return false;
    dimensions_ += shape->size();
    if (dimensions_ <= kMaxDimensions) return true;
    status_ = absl::InvalidArgumentError(absl::StrCat("its description has shapes of more than ",
                                                      kMaxDimensions, " dimensions in all"));
    return false;
  }

  // HasTypes detects unknown names.
  bool ToType(DataType* type) {
    std::string text;
    if (!ToText(&text)) return false;
    const absl::StatusOr<DataType> parsed = ParseDataType(text);
    if (parsed.ok() && TypeName(*parsed) == text) *type = *parsed;
    return true;
  }

  bool ToText(std::string* text) {
    absl::string_view value;
    std::string buffer;
    if (!json_.String(&value, &buffer)) return false;
    *text = std::string(value);
    return true;
  }

  bool Damaged(absl::string_view what, absl::string_view name) {
    status_ = MalformedDescription(absl::StrCat(what, " '", name, "'"));
    return false;
  }

  static constexpr size_t kMaxDimensions = 1'000'000;
  const absl::string_view text_;
  JsonReader json_;
  std::vector<QuantizedEntry> entries_;
  size_t dimensions_ = 0;
  absl::Status status_;
};

// The source of a reference: a tensor of `file`, or a .npy in its folder.
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
  QUANTD_ASSIGN_OR_RETURN(const TensorFile other, OpenTensorFile(folder + reference.tensor));
  if (other.format != FileFormat::kNpy) return MalformedDescription("not a .npy");
  return Source::As(other, other.tensors[0], reference.type, reference.shape);
}

absl::StatusOr<QuantizedTensor> Locate(const TensorFile& file, const TensorsByName& tensors,
                                       QuantizedEntry entry) {
  std::vector<Source> sources;
  for (const Reference& part : entry.parts()) {
    QUANTD_ASSIGN_OR_RETURN(Source source, Locate(file, tensors, part));
    sources.push_back(std::move(source));
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
  const auto dump = [](const OrderedJson& json) {
    return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  };
  std::string text = R"({"version":1,"tensors":{)";
  // One at a time: as JSON they take ten times the size of their text.
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
    absl::StrAppend(&text, text.back() == '{' ? "" : ",", dump(entry.name), ":", dump(json));
  }
  return text + "}}";
}

absl::StatusOr<std::vector<QuantizedEntry>> QuantizedEntriesFromJson(absl::string_view text) {
  return DescriptionReader(text).Run();
}

absl::StatusOr<std::vector<QuantizedTensor>> FindQuantizedTensors(const TensorFile& file) {
  absl::string_view text;
  std::shared_ptr<const MappedFile> sidecar;
  if (file.format == FileFormat::kSafetensors) {
    const auto found = file.metadata.find("quantd");
    if (found == file.metadata.end()) return std::vector<QuantizedTensor>();
    text = found->second;
  } else {
    const std::string path = absl::StrCat(NpyStem(file.path), ".quantization.json");
    absl::StatusOr<std::shared_ptr<const MappedFile>> opened = MappedFile::Open(path);
    if (absl::IsNotFound(opened.status())) return std::vector<QuantizedTensor>();
    if (!opened.ok()) return opened.status();
    sidecar = *std::move(opened);
    const absl::Span<const uint8_t> bytes = sidecar->bytes();
    if (bytes.size() > kMaxSidecar) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " has ", bytes.size(), " bytes, ", kMaxSidecar, " are the most"));
    }
    text = absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  const auto in_file = [&file](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(file.path, ": ", status.message()));
  };
  absl::StatusOr<std::vector<QuantizedEntry>> entries = QuantizedEntriesFromJson(text);
  if (!entries.ok()) return in_file(entries.status());
  if (sidecar != nullptr && entries->size() > 1) {
    return in_file(MalformedDescription(
        absl::StrCat("of ", entries->size(), " tensors, a set of .npy holds one")));
  }
  TensorsByName by_name;
  for (const StoredTensor& tensor : file.tensors) by_name[tensor.name] = &tensor;
  std::vector<QuantizedTensor> tensors;
  tensors.reserve(entries->size());
  for (QuantizedEntry& entry : *entries) {
    absl::StatusOr<QuantizedTensor> tensor = Locate(file, by_name, std::move(entry));
    if (!tensor.ok()) return in_file(tensor.status());
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

absl::string_view NpyStem(absl::string_view path) { return path.substr(0, path.size() - 4); }

}  // namespace quantd::cli
