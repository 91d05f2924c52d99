// .safetensors: an 8-byte little-endian length, a JSON header of that length, the elements.
//
//   {"__metadata__": {"key": "value"},
//    "weight": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}}      offsets: behind the
//    header
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tensor_file.h"

namespace quantd::cli {
namespace {

// To be read: finds a name among many. The other keeps the order, and looks at one by one.
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// As the format's own library: no header is longer.
constexpr uint64_t kMaxHeader = 100'000'000;

absl::Status Malformed(absl::string_view what) {
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
    return Malformed(absl::StrCat("tensor '", name, "': ", what));
  };
  if (!json.is_object()) return bad("not an object");
  const auto dtype = json.find("dtype"), shape = json.find("shape"),
             offsets = json.find("data_offsets");
  if (dtype == json.end() || !dtype->is_string()) return bad("no dtype");
  if (shape == json.end() || !shape->is_array()) return bad("no shape");
  if (offsets == json.end() || !offsets->is_array() || offsets->size() != 2) {
    return bad("no data_offsets");
  }
  StoredTensor tensor;
  tensor.name = name;
  tensor.type = FindBySafetensors(dtype->get_ref<const std::string&>());
  if (tensor.type == nullptr) {
    return bad(absl::StrCat("elements of type '", dtype->get_ref<const std::string&>(),
                            "' cannot be read"));
  }
  if (shape->size() > kMaxRank) return bad(absl::StrCat("it has ", shape->size(), " dimensions"));
  for (const Json& length : *shape) {
    uint64_t value;
    if (!TakeSize(length, &value)) return bad("a length in its shape is not a number >= 0");
    tensor.shape.push_back(static_cast<int64_t>(value));
  }
  const absl::StatusOr<int64_t> elements = ElementCount(tensor.shape, "shape");
  if (!elements.ok()) return bad(elements.status().message());
  const absl::StatusOr<uint64_t> size = StoredBytes(tensor.type->bits, *elements);
  if (!size.ok()) return bad(size.status().message());
  uint64_t begin, end;
  if (!TakeSize((*offsets)[0], &begin) || !TakeSize((*offsets)[1], &end) || begin > end) {
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

}  // namespace

absl::Status ParseSafetensors(absl::Span<const uint8_t> file, TensorFile* result) {
  if (file.size() < 8) return Malformed("the file has fewer than 8 bytes");
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | file[i];
  if (length > file.size() - 8 || length > kMaxHeader) {
    return Malformed(absl::StrCat("it claims ", length, " bytes, the file has ", file.size() - 8));
  }
  const auto* text = reinterpret_cast<const char*>(file.data()) + 8;
  const Json header = Json::parse(text, text + length, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return Malformed("not a JSON object");

  const uint64_t data_begin = 8 + length;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) return Malformed("__metadata__ is not an object");
      for (const auto& [key, entry] : value.items()) {
        if (!entry.is_string()) return Malformed("__metadata__ holds something else than strings");
        result->metadata[key] = entry.get<std::string>();
      }
      continue;
    }
    absl::StatusOr<StoredTensor> tensor =
        ParseTensor(name, value, data_begin, file.size() - data_begin);
    if (!tensor.ok()) return tensor.status();
    result->tensors.push_back(*std::move(tensor));
  }
  std::sort(result->tensors.begin(), result->tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.offset, a.name) < std::tie(b.offset, b.name);
  });
  return absl::OkStatus();
}

std::string SafetensorsHeader(const std::vector<StoredTensor>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  OrderedJson header = OrderedJson::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (const StoredTensor& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.type->safetensors},
        {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())},
        {"data_offsets", {tensor.offset, tensor.offset + tensor.byte_size}}};
  }
  // Bytes that are not UTF-8 are replaced rather than thrown over; elements start at a multiple
  // of 8.
  std::string text = header.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string result;
  for (int i = 0; i < 8; ++i) result.push_back(static_cast<char>(text.size() >> (8 * i)));
  return result + text;
}

}  // namespace quantd::cli
