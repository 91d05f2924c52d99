// .safetensors: an 8-byte little-endian length, a JSON header of that length, the elements.
//
//   {"__metadata__": {"key": "value"},
//    "weight": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}}
//
// Offsets count from the end of the header.
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "files/json_events.h"
#include "files/tensor_file.h"
#include "nlohmann/json.hpp"
#include "status_macros.h"

namespace quantd::cli {
namespace {

using Json = nlohmann::json;

// Half of what the format's own library accepts, so that the memory for the contents stays small.
constexpr uint64_t kMaxHeader = 50'000'000;
constexpr uint64_t kMaxDimensions = 2'000'000, kMaxMetadataBytes = 25'000'000;

absl::Status MalformedSafetensors(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("malformed .safetensors header: ", what));
}

// Reads the header one value at a time: contents other than names, shapes and metadata take no
// memory.
class HeaderReader : private JsonEvents {
 public:
  // The text comes after the first 8 bytes of a file of `file_size` bytes.
  HeaderReader(uint64_t header_size, uint64_t file_size, TensorFile* result)
      : data_begin_(8 + header_size), data_size_(file_size - 8 - header_size), result_(result) {}

  absl::Status Run(absl::string_view text) {
    const bool good = Read(text);
    if (!status_.ok()) return status_;
    if (too_deep()) return MalformedSafetensors("it is nested too deeply");
    if (!good) {
      return MalformedSafetensors(
          absl::StrCat("not a JSON object of UTF-8 (byte ", position(), ")"));
    }
    return CheckNames();
  }

 private:
  // An entry of the header, as far as it was read.
  struct Entry {
    bool dtype = false, shape = false, offsets = false;
    std::vector<uint64_t> place;      // data_offsets
    std::vector<std::string> others;  // keys that are not needed
  };

  bool OnKey(const std::string& key) override {
    if (depth() == 1) return BeginEntry(key);
    key_ = key;
    return in_metadata_ ? TakeMetadataKey() : TakeMember();
  }

  bool OnValue(const Value& value) override {
    if (depth() == 0) return value.kind == Kind::kObject;
    if (depth() == 1) {
      if (value.kind == Kind::kObject) return true;
      return in_metadata_ ? Fail("__metadata__ is not an object") : Bad("not an object");
    }
    if (in_metadata_) return TakeMetadata(value);
    if (key_ == "shape") return depth() == 2 ? Begins(value, "no shape") : TakeLength(value);
    if (key_ == "dtype") return TakeDtype(value);
    return depth() == 2 ? Begins(value, "no data_offsets") : TakeOffset(value);
  }

  bool OnEnd() override {
    if (depth() == 1) return in_metadata_ || Place(entry_, &tensor());
    if (depth() == 0) return true;
    if (key_ == "shape") return EndShape();
    return entry_.place.size() == 2 || Bad("no data_offsets");
  }

  bool BeginEntry(const std::string& key) {
    in_metadata_ = key == "__metadata__";
    if (in_metadata_) {
      return !std::exchange(has_metadata_, true) ||
             Fail("it contains the name '__metadata__' twice");
    }
    if (result_->tensors.size() == kMaxTensors) {
      return Fail(absl::StrCat("it has more than ", kMaxTensors, " tensors"));
    }
    result_->tensors.emplace_back().name = key;
    entry_ = {};
    return true;
  }

  bool TakeMetadataKey() {
    if (result_->metadata.size() == kMaxMetadata) {
      return Fail(absl::StrCat("__metadata__ has more than ", kMaxMetadata, " keys"));
    }
    return result_->metadata.count(key_) == 0 ||
           Fail(absl::StrCat("'__metadata__' has '", key_, "' twice"));
  }

  bool TakeMetadata(const Value& value) {
    if (value.kind != Kind::kText) return Fail("__metadata__ holds something else than strings");
    metadata_bytes_ += key_.size() + value.text->size();
    if (metadata_bytes_ > kMaxMetadataBytes) {
      return Fail(absl::StrCat("__metadata__ has more than ", kMaxMetadataBytes, " bytes"));
    }
    result_->metadata.emplace(key_, *value.text);
    return true;
  }

  bool TakeMember() {
    bool* const seen = key_ == "dtype"          ? &entry_.dtype
                       : key_ == "shape"        ? &entry_.shape
                       : key_ == "data_offsets" ? &entry_.offsets
                                                : nullptr;
    if (seen != nullptr) return !std::exchange(*seen, true) || Twice();
    // A key that the format does not define.
    std::vector<std::string>& others = entry_.others;
    if (std::find(others.begin(), others.end(), key_) != others.end()) return Twice();
    if (others.size() == kMaxOthers) {
      return Bad(absl::StrCat("it has more than ", kMaxOthers, " keys that are not the format's"));
    }
    others.push_back(key_);
    return Skip();
  }

  bool TakeDtype(const Value& value) {
    if (value.kind != Kind::kText) return Bad("no dtype");
    tensor().type = FindBySafetensors(*value.text);
    return tensor().type != nullptr ||
           Bad(absl::StrCat("elements of type '", *value.text, "' cannot be read"));
  }

  // Shape and data_offsets are arrays.
  bool Begins(const Value& value, absl::string_view otherwise) {
    return value.kind == Kind::kArray || Bad(otherwise);
  }

  bool TakeLength(const Value& value) {
    if (tensor().shape.size() == static_cast<size_t>(kMaxRank)) {
      return Bad(absl::StrCat("it has more than ", kMaxRank, " dimensions"));
    }
    tensor().shape.push_back(static_cast<int64_t>(value.number));
    return IsSize(value) || Bad("a length in its shape is not a number >= 0");
  }

  bool EndShape() {
    dimensions_ += tensor().shape.size();
    tensor().shape.shrink_to_fit();
    return dimensions_ <= kMaxDimensions ||
           Fail(absl::StrCat("its tensors have more than ", kMaxDimensions, " dimensions in all"));
  }

  bool TakeOffset(const Value& value) {
    if (entry_.place.size() == 2) return Bad("it has more than two data_offsets");
    entry_.place.push_back(value.number);
    return IsSize(value) || Bad("data_offsets are not two increasing numbers");
  }

  // Sets the tensor's place in the file from its entry.
  bool Place(const Entry& entry, StoredTensor* tensor) {
    if (!entry.dtype) return Bad("no dtype");
    if (!entry.shape) return Bad("no shape");
    if (!entry.offsets) return Bad("no data_offsets");
    const absl::StatusOr<uint64_t> size = StoredBytes(tensor->type->bits, tensor->shape);
    if (!size.ok()) return Bad(size.status().message());
    const uint64_t begin = entry.place[0], end = entry.place[1];
    if (begin > end) return Bad("data_offsets are not two increasing numbers");
    if (end > data_size_) {
      return Bad(absl::StrCat("its data ends at ", end, ", the file has ", data_size_,
                              " bytes of data (truncated?)"));
    }
    if (end - begin != *size) {
      return Bad(absl::StrCat("shape ", ShapeString(tensor->shape), " of ", tensor->type->name,
                              " takes ", *size, " bytes, data_offsets span ", end - begin));
    }
    tensor->offset = data_begin_ + begin;
    tensor->byte_size = *size;
    return true;
  }

  absl::Status CheckNames() const {
    absl::flat_hash_set<absl::string_view> names;
    names.reserve(result_->tensors.size());
    for (const StoredTensor& tensor : result_->tensors) {
      if (names.insert(tensor.name).second) continue;
      return MalformedSafetensors(absl::StrCat("it contains the name '", tensor.name, "' twice"));
    }
    return absl::OkStatus();
  }

  // A length or an offset.
  static bool IsSize(const Value& value) {
    return value.kind == Kind::kUnsigned && value.number <= INT64_MAX;
  }

  StoredTensor& tensor() { return result_->tensors.back(); }  // that is being read
  bool Twice() { return Fail(absl::StrCat("'", tensor().name, "' has '", key_, "' twice")); }
  bool Bad(absl::string_view what) {
    return Fail(absl::StrCat("tensor '", tensor().name, "': ", what));
  }
  bool Fail(absl::string_view what) {
    status_ = MalformedSafetensors(what);
    return false;
  }

  static constexpr size_t kMaxMetadata = 100'000, kMaxOthers = 64;
  const uint64_t data_begin_, data_size_;
  TensorFile* const result_;
  absl::Status status_;
  std::string key_;  // of the entry
  Entry entry_;
  bool in_metadata_ = false, has_metadata_ = false;
  uint64_t dimensions_ = 0, metadata_bytes_ = 0;
};

// Checks that every byte of the data belongs to exactly one tensor.
absl::Status CheckCoverage(const std::vector<StoredTensor>& tensors, uint64_t begin, uint64_t end) {
  absl::string_view before;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.offset < begin) {
      return MalformedSafetensors(absl::StrCat("tensors '", before, "' and '", tensor.name,
                                               "' overlap by ", begin - tensor.offset, " bytes"));
    }
    if (tensor.offset > begin) {
      return MalformedSafetensors(absl::StrCat("a hole of ", tensor.offset - begin,
                                               " bytes lies before '", tensor.name, "'"));
    }
    begin += tensor.byte_size;
    before = tensor.name;
  }
  if (begin == end) return absl::OkStatus();
  return MalformedSafetensors(absl::StrCat("the last ", end - begin, " bytes belong to no tensor"));
}

}  // namespace

absl::StatusOr<uint64_t> SafetensorsHeaderLength(absl::Span<const uint8_t> start,
                                                 uint64_t file_size) {
  if (start.size() < 8) return MalformedSafetensors("the file has fewer than 8 bytes");
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | start[i];
  if (length > file_size - 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a .safetensors file: the header would have ", length,
                     " bytes, the file has ", file_size - 8));
  }
  if (length > kMaxHeader) {
    return MalformedSafetensors(
        absl::StrCat("it has ", length, " bytes, ", kMaxHeader, " are the most"));
  }
  return length;
}

absl::Status ParseSafetensorsHeader(absl::string_view text, uint64_t file_size,
                                    TensorFile* result) {
  QUANTD_RETURN_IF_ERROR(HeaderReader(text.size(), file_size, result).Run(text));
  std::sort(result->tensors.begin(), result->tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.offset, a.byte_size, a.name) < std::tie(b.offset, b.byte_size, b.name);
  });
  return CheckCoverage(result->tensors, 8 + text.size(), file_size);
}

absl::Status ParseSafetensors(absl::Span<const uint8_t> file, TensorFile* result) {
  QUANTD_ASSIGN_OR_RETURN(const uint64_t length, SafetensorsHeaderLength(file, file.size()));
  return ParseSafetensorsHeader({reinterpret_cast<const char*>(file.data()) + 8, length},
                                file.size(), result);
}

namespace {

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

absl::Status CheckSafetensorsHeader(absl::string_view path, const HeaderSizes& sizes) {
  for (const auto& [size, most, what] :
       {std::tuple(sizes.tensors, uint64_t{kMaxTensors}, "tensors"),
        {sizes.dimensions, kMaxDimensions, "dimensions"},
        {sizes.metadata_bytes, kMaxMetadataBytes, "bytes of __metadata__"},
        {sizes.bytes, kMaxHeader, "bytes"}}) {
    if (size <= most) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, " would have a header of more than ", most, " ", what));
  }
  return absl::OkStatus();
}

SafetensorsHeaderWriter::SafetensorsHeaderWriter(const std::map<std::string, std::string>& metadata,
                                                 size_t tensors)
    : text_(8, '\0') {
  text_.reserve(128 * (tensors + 1));
  text_.push_back('{');
  if (!metadata.empty()) absl::StrAppend(&text_, "\"__metadata__\":", Dump(metadata), ",");
}

void SafetensorsHeaderWriter::Add(const std::string& name, absl::string_view dtype,
                                  absl::Span<const int64_t> shape, uint64_t begin, uint64_t end) {
  absl::StrAppend(&text_, Dump(name), ":{\"dtype\":\"", dtype, "\",\"shape\":[",
                  absl::StrJoin(shape, ","), "],\"data_offsets\":[", begin, ",", end);
  text_ += "]},";
}

std::string SafetensorsHeaderWriter::Finish(uint64_t least) {
  if (text_.back() == ',') text_.pop_back();
  text_.push_back('}');
  if (text_.size() < least) text_.append(least - text_.size(), ' ');
  text_.append((8 - text_.size() % 8) % 8, ' ');  // elements start at a multiple of 8
  for (size_t i = 0; i < 8; ++i) text_[i] = static_cast<char>((text_.size() - 8) >> (8 * i));
  return std::move(text_);
}

std::string SafetensorsHeader(const std::vector<StoredTensor>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  SafetensorsHeaderWriter header(metadata, tensors.size());
  for (const StoredTensor& tensor : tensors) {
    header.Add(tensor.name, tensor.type->safetensors, tensor.shape, tensor.offset,
               tensor.offset + tensor.byte_size);
  }
  return header.Finish();
}

}  // namespace quantd::cli
