#include "files/quantized_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "files/json_events.h"
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

// Whether a description is valid JSON, and its version.
class VersionReader : private JsonEvents {
 public:
  absl::Status Check(absl::string_view text) {
    if (!Read(text) || seen_ != 3) return MalformedDescription("not the JSON that quantctl writes");
    return version_ == 1 ? absl::OkStatus() : MalformedDescription("of another version");
  }

 private:
  bool OnKey(const std::string& key) override {
    member_ = key == "version" ? 1 : key == "tensors" ? 2 : 0;
    if ((seen_ & member_) != 0) return false;
    seen_ |= member_;
    return member_ != 0 || Skip();
  }
  bool OnValue(const Value& value) override {
    if (depth() == 0) return value.kind == Kind::kObject;
    if (member_ == 2 && value.kind != Kind::kObject) return false;
    if (value.kind == Kind::kUnsigned) version_ = value.number;
    return Skip();
  }
  bool OnEnd() override { return true; }

  int member_ = 0, seen_ = 0;  // 1: version, 2: tensors
  uint64_t version_ = 0;
};

// Reads a description one value at a time: contents other than the entries take no memory.
class DescriptionReader : private JsonEvents {
 public:
  absl::StatusOr<std::vector<QuantizedEntry>> Run(absl::string_view text) {
    QUANTD_RETURN_IF_ERROR(VersionReader().Check(text));
    if (!Read(text)) {
      return status_.ok() ? Damaged("tensor") : status_;
    }
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
  static constexpr std::array<absl::string_view, 9> kKeys = {
      "y",    "scale",      "zero_point", "tensor_scale", "input_type", "original_type",
      "axis", "block_size", "block_shape"};
  static constexpr std::array<absl::string_view, 3> kReferenceKeys = {"tensor", "type", "shape"};
  static constexpr uint32_t kNeeded = 3;  // y and scale

  // Notes a key that must not occur twice. Others are skipped.
  bool Note(absl::Span<const absl::string_view> keys, const std::string& key, uint32_t* seen) {
    const auto at = std::find(keys.begin(), keys.end(), key);
    if (at == keys.end()) return Skip();
    const uint32_t bit = 1u << (at - keys.begin());
    return (std::exchange(*seen, *seen | bit) & bit) == 0;
  }

  bool OnKey(const std::string& key) override {
    switch (depth()) {
      case 1:
        return key == "tensors" || Skip();
      case 2:
        return Begin(key);
      case 3:
        key_ = key;
        return Note(kKeys, key, &seen_);
      default:
        part_key_ = key;
        return Note(kReferenceKeys, key, &part_seen_);
    }
  }

  bool OnValue(const Value& value) override {
    if (depth() < 3) return value.kind == Kind::kObject;
    if (depth() == 3) return TakeMember(value);
    if (part_ == nullptr) return TakeLength(value, &entries_.back().granularity.block_shape);
    if (depth() == 5) return TakeLength(value, &part_->shape);
    if (part_key_ == "shape") return value.kind == Kind::kArray;
    return part_key_ == "type" ? TakeType(value, &part_->type) : TakeText(value, &part_->tensor);
  }

  bool OnEnd() override {
    if (depth() == 4) return CountDimensions(part_->shape);
    if (depth() == 3) {
      if (part_ == nullptr) return CountDimensions(entries_.back().granularity.block_shape);
      return part_seen_ == 7;
    }
    if (depth() != 2) return true;
    if ((seen_ & kNeeded) != kNeeded) return false;
    entries_.back().was_float64 = original_ == "float64";
    if (HasTypes(entries_.back())) return true;
    status_ = Damaged("types of tensor");
    return false;
  }

  bool Begin(const std::string& name) {
    if (entries_.size() == kMaxQuantizedTensors) {
      status_ = absl::InvalidArgumentError(absl::StrCat(
          "its description has more than ", kMaxQuantizedTensors, " quantized tensors"));
      return false;
    }
    entries_.emplace_back().name = name;
    original_.clear();
    seen_ = 0;
    return true;
  }

  bool TakeMember(const Value& value) {
    QuantizedEntry& entry = entries_.back();
    part_ = nullptr;
    if (key_ == "input_type") return TakeType(value, &entry.input_type);
    if (key_ == "original_type") return TakeText(value, &original_);
    if (key_ == "axis") return TakeInteger(value, &entry.granularity.axis.emplace());
    if (key_ == "block_size") return TakeInteger(value, &entry.granularity.block_size);
    if (key_ == "block_shape") return value.kind == Kind::kArray;
    part_ = key_ == "y"            ? &entry.y
            : key_ == "scale"      ? &entry.scale
            : key_ == "zero_point" ? &entry.zero_point.emplace()
                                   : &entry.tensor_scale.emplace();
    part_seen_ = 0;
    return value.kind == Kind::kObject;
  }

  bool TakeInteger(const Value& value, int64_t* to) {
    *to = static_cast<int64_t>(value.number);
    return (value.kind == Kind::kUnsigned && *to >= 0) ||
           (value.kind == Kind::kNegative && *to < 0);  // -0 is none
  }

  bool TakeLength(const Value& value, Shape* shape) {
    return shape->size() < static_cast<size_t>(kMaxRank) &&
           TakeInteger(value, &shape->emplace_back());
  }

  bool CountDimensions(const Shape& shape) {
    dimensions_ += shape.size();
    if (dimensions_ <= kMaxDimensions) return true;
    status_ = absl::InvalidArgumentError(absl::StrCat("its description has shapes of more than ",
                                                      kMaxDimensions, " dimensions in all"));
    return false;
  }

  // HasTypes detects unknown names.
  bool TakeType(const Value& value, DataType* type) {
    if (value.kind != Kind::kText) return false;
    const absl::StatusOr<DataType> parsed = ParseDataType(*value.text);
    if (parsed.ok() && TypeName(*parsed) == *value.text) *type = *parsed;
    return true;
  }

  bool TakeText(const Value& value, std::string* to) {
    if (value.kind != Kind::kText) return false;
    *to = *value.text;
    return true;
  }

  absl::Status Damaged(absl::string_view what) const {
    return MalformedDescription(absl::StrCat(what, " '", entries_.back().name, "'"));
  }

  static constexpr size_t kMaxDimensions = 1'000'000;
  std::vector<QuantizedEntry> entries_;  // the last one is being read
  std::string key_, part_key_, original_;
  Reference* part_ = nullptr;          // of the entry, that is being read
  uint32_t seen_ = 0, part_seen_ = 0;  // bits of kKeys and kReferenceKeys
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
  return DescriptionReader().Run(text);
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
