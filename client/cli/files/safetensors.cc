// .safetensors: an 8-byte little-endian length, a JSON header of that length, the elements.
//
//   {"__metadata__": {"key": "value"},
//    "weight": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}}
//
// Offsets count from the end of the header.
#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "files/json_reader.h"
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
class HeaderReader {
 public:
  // `text` comes after the first 8 bytes of a file of `file_size` bytes.
  HeaderReader(absl::string_view text, uint64_t file_size, TensorFile* result)
      : json_(text),
        data_begin_(8 + text.size()),
        data_size_(file_size - 8 - text.size()),
        result_(result) {}

  absl::Status Run() {
    const bool good = json_.Object([this](absl::string_view key) { return TakeEntry(key); });
    if (!status_.ok()) return status_;
    if (json_.too_deep()) return MalformedSafetensors("it is nested too deeply");
    if (!good || !json_.End()) {
      return MalformedSafetensors(
          absl::StrCat("not a JSON object of UTF-8 (byte ", json_.position(), ")"));
    }
    return CheckNames();
  }

 private:
  // An entry of the header, as far as it was read.
  struct Entry {
    bool dtype = false, shape = false, offsets = false;
    std::array<uint64_t, 2> place = {};  // data_offsets
    std::vector<std::string> others;     // keys that are not needed
  };

  bool TakeEntry(absl::string_view key) {
    if (key == "__metadata__") return TakeMetadata();
    if (result_->tensors.size() == kMaxTensors) {
      return Fail(absl::StrCat("it has more than ", kMaxTensors, " tensors"));
    }
    StoredTensor& tensor = result_->tensors.emplace_back();
    tensor.name = std::string(key);
    if (json_.Next() != '{') return Bad("not an object");
    Entry entry;
    const bool good = json_.Object([&](absl::string_view member) {
      if (member == "dtype") return Once(&entry.dtype, member) && TakeDtype(&tensor);
      if (member == "shape") return Once(&entry.shape, member) && TakeShape(&tensor);
      if (member == "data_offsets") return Once(&entry.offsets, member) && TakeOffsets(&entry);
      return TakeOther(member, &entry);
    });
    return good && Place(entry, &tensor);
  }

  bool TakeMetadata() {
    if (std::exchange(has_metadata_, true))
      return Fail("it contains the name '__metadata__' twice");
    if (json_.Next() != '{') return Fail("__metadata__ is not an object");
    std::string buffer;
    return json_.Object([&](absl::string_view key) {
      absl::string_view value;
      if (json_.Next() != '"') return Fail("__metadata__ holds something else than strings");
      if (result_->metadata.size() == kMaxMetadata) {
        return Fail(absl::StrCat("__metadata__ has more than ", kMaxMetadata, " keys"));
      }
      const std::string name(key);
      if (result_->metadata.count(name) > 0) {
        return Fail(absl::StrCat("'__metadata__' has '", key, "' twice"));
      }
      if (!json_.String(&value, &buffer)) return false;
      metadata_bytes_ += name.size() + value.size();
      if (metadata_bytes_ > kMaxMetadataBytes) {
        return Fail(absl::StrCat("__metadata__ has more than ", kMaxMetadataBytes, " bytes"));
      }
      result_->metadata.emplace(name, value);
      return true;
    });
  }

  bool TakeDtype(StoredTensor* tensor) {
    absl::string_view dtype;
    std::string buffer;
    if (json_.Next() != '"') return Bad("no dtype");
    if (!json_.String(&dtype, &buffer)) return false;
    tensor->type = FindBySafetensors(dtype);
    return tensor->type != nullptr ||
           Bad(absl::StrCat("elements of type '", dtype, "' cannot be read"));
  }

  bool TakeShape(StoredTensor* tensor) {
    if (json_.Next() != '[') return Bad("no shape");
    const bool good = json_.Array([&] {
      uint64_t length;
      if (tensor->shape.size() == static_cast<size_t>(kMaxRank)) {
        return Bad(absl::StrCat("it has more than ", kMaxRank, " dimensions"));
      }
      if (!TakeSize(&length)) return Bad("a length in its shape is not a number >= 0");
      tensor->shape.push_back(static_cast<int64_t>(length));
      return true;
    });
    if (!good) return false;
    dimensions_ += tensor->shape.size();
    if (dimensions_ > kMaxDimensions) {
      return Fail(
          absl::StrCat("its tensors have more than ", kMaxDimensions, " dimensions in all"));
    }
    tensor->shape.shrink_to_fit();
    return true;
  }

  bool TakeOffsets(Entry* entry) {
    if (json_.Next() != '[') return Bad("no data_offsets");
    size_t count = 0;
    const bool good = json_.Array([&] {
      if (count == entry->place.size()) return Bad("it has more than two data_offsets");
      if (TakeSize(&entry->place[count++])) return true;
      return Bad("data_offsets are not two increasing numbers");
    });
    return good && (count == entry->place.size() || Bad("no data_offsets"));
  }

  // A key that the format does not define.
  bool TakeOther(absl::string_view key, Entry* entry) {
    std::vector<std::string>& others = entry->others;
    if (std::find(others.begin(), others.end(), key) != others.end()) return Twice(key);
    if (others.size() == kMaxOthers) {
      return Bad(absl::StrCat("it has more than ", kMaxOthers, " keys that are not the format's"));
    }
    others.emplace_back(key);
    return json_.Skip();
  }

  // Sets the tensor's place in the file from its entry.
  bool Place(const Entry& entry, StoredTensor* tensor) {
    if (!entry.dtype) return Bad("no dtype");
    if (!entry.shape) return Bad("no shape");
    if (!entry.offsets) return Bad("no data_offsets");
    const absl::StatusOr<uint64_t> size = StoredBytes(tensor->type->bits, tensor->shape);
    if (!size.ok()) return Bad(size.status().message());
    const auto [begin, end] = entry.place;
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
  bool TakeSize(uint64_t* value) { return json_.Unsigned(value) && *value <= INT64_MAX; }

  bool Once(bool* seen, absl::string_view key) { return !std::exchange(*seen, true) || Twice(key); }
  bool Twice(absl::string_view key) {
    return Fail(absl::StrCat("'", result_->tensors.back().name, "' has '", key, "' twice"));
  }
  // Reports an error of the tensor that is being read.
  bool Bad(absl::string_view what) {
    return Fail(absl::StrCat("tensor '", result_->tensors.back().name, "': ", what));
  }
  bool Fail(absl::string_view what) {
    status_ = MalformedSafetensors(what);
    return false;
  }

  static constexpr size_t kMaxMetadata = 100'000, kMaxOthers = 64;
  JsonReader json_;
  const uint64_t data_begin_, data_size_;
  TensorFile* const result_;
  absl::Status status_;
  bool has_metadata_ = false;
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
  QUANTD_RETURN_IF_ERROR(HeaderReader(text, file_size, result).Run());
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
