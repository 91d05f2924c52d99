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

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "files/tensor_file.h"
#include "nlohmann/json.hpp"

namespace quantd::cli {
namespace {

using Json = nlohmann::json;

// A quarter of what the format's own library takes, and 400,000 tensors: the memory for what it
// says stays small.
constexpr uint64_t kMaxHeader = 25'000'000;

absl::Status MalformedSafetensors(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("malformed .safetensors header: ", what));
}

// A number that is a length or an offset.
bool TakeSize(const Json& json, uint64_t* value) {
  if (!json.is_number_unsigned()) return false;
  *value = json.get<uint64_t>();
  return *value <= INT64_MAX;
}

absl::StatusOr<StoredTensor> ParseTensor(const std::string& name, const Json& json,
                                         uint64_t data_begin, uint64_t data_size) {
  const auto bad = [&name](absl::string_view what) {
    return MalformedSafetensors(absl::StrCat("tensor '", name, "': ", what));
  };
  if (!json.is_object()) return bad("not an object");
  const Json dtype = json.value("dtype", Json()), shape = json.value("shape", Json()),
             offsets = json.value("data_offsets", Json());
  if (!dtype.is_string()) return bad("no dtype");
  if (!shape.is_array()) return bad("no shape");
  if (!offsets.is_array() || offsets.size() != 2) return bad("no data_offsets");
  StoredTensor tensor;
  tensor.name = name;
  tensor.type = FindBySafetensors(dtype.get_ref<const std::string&>());
  if (tensor.type == nullptr) {
    return bad(absl::StrCat("elements of type '", dtype.get_ref<const std::string&>(),
                            "' cannot be read"));
  }
  if (shape.size() > kMaxRank) return bad(absl::StrCat("it has ", shape.size(), " dimensions"));
  for (const Json& length : shape) {
    uint64_t value;
    if (!TakeSize(length, &value)) return bad("a length in its shape is not a number >= 0");
    tensor.shape.push_back(static_cast<int64_t>(value));
  }
  const absl::StatusOr<uint64_t> size = StoredBytes(tensor.type->bits, tensor.shape);
  if (!size.ok()) return bad(size.status().message());
  uint64_t begin, end;
  if (!TakeSize(offsets[0], &begin) || !TakeSize(offsets[1], &end) || begin > end) {
    return bad("data_offsets are not two increasing numbers");
  }
  if (end > data_size) {
    return bad(absl::StrCat("its data ends at ", end, ", the file has ", data_size,
                            " bytes of data (truncated?)"));
  }
  if (end - begin != *size) {
    return bad(absl::StrCat("shape ", ShapeString(tensor.shape), " of ", tensor.type->name,
                            " takes ", *size, " bytes, data_offsets span ", end - begin));
  }
  tensor.offset = data_begin + begin;
  tensor.byte_size = *size;
  return tensor;
}

// Reads the header an entry at a time, so that only one is in memory as JSON.
class HeaderReader {
 public:
  // `text` lies behind the 8 bytes of a file of `file_size` bytes.
  HeaderReader(absl::string_view text, uint64_t file_size, TensorFile* result)
      : text_(text), data_size_(file_size - 8 - text.size()), result_(result) {}

  absl::Status Run() {
    const Json header = Json::parse(
        text_.begin(), text_.end(),
        [this](int depth, Json::parse_event_t event, Json& value) {
          return Take(depth, event, value);
        },
        /*allow_exceptions=*/false);
    if (!status_.ok()) return status_;
    if (!header.is_object()) return MalformedSafetensors("not a JSON object of UTF-8");
    return absl::OkStatus();
  }

 private:
  using Event = Json::parse_event_t;

  bool Take(int depth, Event event, Json& value) {
    if (!status_.ok()) return false;
    if (depth > kMaxDepth) return Fail(MalformedSafetensors("it is nested too deeply"));
    if (event == Event::object_start && depth == 1) keys_.clear();
    if (event == Event::key) return TakeKey(depth, value.get_ref<const std::string&>());
    const bool ends = event == Event::object_end || event == Event::array_end;
    if (depth != 1 || !(ends || event == Event::value)) return true;
    if (entry_ == "__metadata__") return TakeMetadata(value);
    absl::StatusOr<StoredTensor> tensor = ParseTensor(entry_, value, 8 + text_.size(), data_size_);
    if (!tensor.ok()) return Fail(tensor.status());
    result_->tensors.push_back(*std::move(tensor));
    return false;
  }

  bool TakeKey(int depth, const std::string& key) {
    if (depth == 1) {
      entry_ = key;
      return names_.insert(key).second ||
             Fail(MalformedSafetensors(absl::StrCat("it contains the name '", key, "' twice")));
    }
    return depth > 2 || keys_.insert(key).second ||
           Fail(MalformedSafetensors(absl::StrCat("'", entry_, "' has '", key, "' twice")));
  }

  bool TakeMetadata(const Json& value) {
    if (!value.is_object()) return Fail(MalformedSafetensors("__metadata__ is not an object"));
    for (const auto& [key, entry] : value.items()) {
      if (!entry.is_string()) {
        return Fail(MalformedSafetensors("__metadata__ holds something else than strings"));
      }
      result_->metadata[key] = entry.get<std::string>();
    }
    return false;
  }

  bool Fail(absl::Status status) {
    status_ = std::move(status);
    return false;
  }

  static constexpr int kMaxDepth = 4;
  const absl::string_view text_;
  const uint64_t data_size_;
  TensorFile* const result_;
  absl::Status status_;
  std::string entry_;  // the key whose value is being read
  absl::flat_hash_set<std::string> names_, keys_;
};

// Every byte of the data belongs to one tensor.
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
    return MalformedSafetensors(
        absl::StrCat("it claims ", length, " bytes, the file has ", file_size - 8));
  }
  if (length > kMaxHeader) {
    return MalformedSafetensors(
        absl::StrCat("it has ", length, " bytes, ", kMaxHeader, " are the most"));
  }
  return length;
}

absl::Status ParseSafetensorsHeader(absl::string_view text, uint64_t file_size,
                                    TensorFile* result) {
  if (absl::Status status = HeaderReader(text, file_size, result).Run(); !status.ok()) {
    return status;
  }
  std::sort(result->tensors.begin(), result->tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.offset, a.byte_size, a.name) < std::tie(b.offset, b.byte_size, b.name);
  });
  return CheckCoverage(result->tensors, 8 + text.size(), file_size);
}

absl::Status ParseSafetensors(absl::Span<const uint8_t> file, TensorFile* result) {
  const absl::StatusOr<uint64_t> length = SafetensorsHeaderLength(file, file.size());
  if (!length.ok()) return length.status();
  return ParseSafetensorsHeader({reinterpret_cast<const char*>(file.data()) + 8, *length},
                                file.size(), result);
}

namespace {

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

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
