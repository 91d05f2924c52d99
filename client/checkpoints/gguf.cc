#include "checkpoints/gguf.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "checkpoints/errors.h"
#include "files/tensor_file.h"
#include "quantd/utf8.h"
#include "status_macros.h"

namespace quantd::checkpoints {
namespace {

constexpr uint64_t kMaxHeader = uint64_t{1} << 30;
constexpr uint64_t kMaxName = 1 << 12, kMaxKeys = 1 << 16;
// The limits for all names, and for the dimensions of all tensors, because these are kept in
// memory.
constexpr uint64_t kMaxNames = 32 << 20, kMaxDimensions = 2'000'000;
constexpr int kMaxArrays = 8;  // nested in one another
constexpr uint32_t kArray = 9;
// Bytes of a value by its type; 0 for strings and arrays.
constexpr std::array<uint64_t, 13> kValueBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

// GGML's table; missing numbers were withdrawn.
constexpr std::array<GgmlType, 34> kTypes = {{
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 40},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},
}};

// Reads the file from the beginning, in parts.
class Reader {
 public:
  Reader(const OpenFile& file, uint64_t size) : file_(file), size_(size), buffer_(64 << 10) {}

  uint64_t position() const { return position_; }
  uint64_t left() const { return size_ - position_; }

  absl::Status Bytes(uint8_t* to, uint64_t count, absl::string_view what) {
    QUANTD_RETURN_IF_ERROR(Check(count, what));
    while (count > 0) {
      if (position_ < begin_ || position_ >= begin_ + filled_) {
        begin_ = position_;
        filled_ = std::min<uint64_t>(buffer_.size(), size_ - begin_);
        QUANTD_RETURN_IF_ERROR(file_.Read(begin_, absl::MakeSpan(buffer_).first(filled_)));
      }
      const uint64_t some = std::min(count, begin_ + filled_ - position_);
      std::memcpy(to, buffer_.data() + (position_ - begin_), some);
      to += some;
      count -= some;
      position_ += some;
    }
    return absl::OkStatus();
  }
  template <typename T>
  absl::Status Number(T* value, absl::string_view what) {
    std::array<uint8_t, sizeof(T)> bytes;
    QUANTD_RETURN_IF_ERROR(Bytes(bytes.data(), bytes.size(), what));
    *value = 0;
    for (size_t i = 0; i < bytes.size(); ++i) *value |= T{bytes[i]} << (8 * i);
    return absl::OkStatus();
  }
  absl::Status Skip(uint64_t count, absl::string_view what) {
    QUANTD_RETURN_IF_ERROR(Check(count, what));
    position_ += count;
    return absl::OkStatus();
  }
  absl::Status Name(std::string* name, absl::string_view what) {
    uint64_t length;
    QUANTD_RETURN_IF_ERROR(Number(&length, what));
    if (length == 0) return Bad("$0 is empty", what);
    if (length > kMaxName) {
      return Bad("$0 has $1 bytes, $2 are the most", what, length, kMaxName);
    }
    QUANTD_RETURN_IF_ERROR(Check(length, what));
    names_ += length;
    if (names_ > kMaxNames) {
      return Bad("with $0 its names have $1 bytes, $2 are the most", what, names_, kMaxNames);
    }
    name->resize(length);
    QUANTD_RETURN_IF_ERROR(Bytes(reinterpret_cast<uint8_t*>(name->data()), length, what));
    if (ValidUtf8Prefix(*name) == name->size()) return absl::OkStatus();
    return Bad("$0 is not UTF-8", what);
  }
  template <typename... Values>
  static absl::Status Bad(absl::string_view what, const Values&... values) {
    return ContentError("malformed .gguf header: $0", absl::Substitute(what, values...));
  }
  absl::Status Check(uint64_t count, absl::string_view what) const {
    if (count > left()) {
      return Bad("$0 takes $1 bytes, the file has $2 more (truncated?)", what, count, left());
    }
    if (count > kMaxHeader - std::min(kMaxHeader, position_)) {
      return Bad("it has more than $0 bytes", kMaxHeader);
    }
    return absl::OkStatus();
  }

 private:
  const OpenFile& file_;
  const uint64_t size_;
  uint64_t position_ = 0, names_ = 0;
  std::vector<uint8_t> buffer_;
  uint64_t begin_ = 0, filled_ = 0;
};

absl::Status SkipValue(Reader& reader, uint32_t type, const std::string& what, int arrays) {
  if (type >= kValueBytes.size()) {
    return Reader::Bad("$0 is of type $1, which does not exist", what, type);
  }
  if (kValueBytes[type] > 0) return reader.Skip(kValueBytes[type], what);
  uint64_t count;
  uint32_t element = 0;
  if (type == kGgufString) {
    QUANTD_RETURN_IF_ERROR(reader.Number(&count, what));
    return reader.Skip(count, what);
  }
  if (arrays == kMaxArrays) return Reader::Bad("$0 has arrays too deep", what);
  QUANTD_RETURN_IF_ERROR(reader.Number(&element, what));
  QUANTD_RETURN_IF_ERROR(reader.Number(&count, what));
  if (element >= kValueBytes.size()) {
    return Reader::Bad("$0 is of type $1, which does not exist", what, element);
  }
  // Strings and arrays take at least 8 and 12 bytes.
  const uint64_t least = kValueBytes[element] > 0 ? kValueBytes[element]
                         : element == kArray      ? 12
                                                  : 8;
  if (count > reader.left() / least) {
    return Reader::Bad("$0 claims $1 elements, the file has $2 more bytes", what, count,
                       reader.left());
  }
  if (kValueBytes[element] > 0) return reader.Skip(count * kValueBytes[element], what);
  for (uint64_t i = 0; i < count; ++i) {
    QUANTD_RETURN_IF_ERROR(SkipValue(reader, element, what, arrays + 1));
  }
  return absl::OkStatus();
}

// Checks that no name occurs twice among `named`, which are keys or tensors.
template <typename T>
absl::Status CheckNamesDiffer(const std::vector<T>& named, absl::string_view what) {
  absl::flat_hash_set<absl::string_view> names;
  names.reserve(named.size());
  for (const T& one : named) {
    if (names.insert(one.name).second) continue;
    return Reader::Bad("$0 '$1' occurs twice", what, one.name);
  }
  return absl::OkStatus();
}

absl::Status ReadKeys(Reader& reader, uint64_t count, GgufHeader* header) {
  header->keys.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    GgufKey key;
    key.offset = reader.position();
    uint32_t type;
    QUANTD_RETURN_IF_ERROR(reader.Name(&key.name, absl::StrCat("the name of key ", i)));
    const std::string what = absl::StrCat("key '", key.name, "'");
    QUANTD_RETURN_IF_ERROR(reader.Number(&type, what));
    if (key.name == "general.alignment") {
      uint32_t alignment;
      if (type != kGgufUint32) return Reader::Bad("$0 is not a uint32", what);
      QUANTD_RETURN_IF_ERROR(reader.Number(&alignment, what));
      if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
        return Reader::Bad("$0 is $1, which is not a power of two", what, alignment);
      }
      header->alignment = alignment;
    } else if (key.name == "split.count" && type < kValueBytes.size() && kValueBytes[type] > 0) {
      for (uint64_t byte = 0; byte < kValueBytes[type]; ++byte) {
        uint8_t value;
        QUANTD_RETURN_IF_ERROR(reader.Number(&value, what));
        header->split_parts |= uint64_t{value} << (8 * byte);
      }
    } else {
      QUANTD_RETURN_IF_ERROR(SkipValue(reader, type, what, 0));
    }
    key.bytes = reader.position() - key.offset;
    header->keys.push_back(std::move(key));
  }
  return CheckNamesDiffer(header->keys, "key");
}

// Offsets count from the first tensor's byte.
absl::Status ReadTensor(Reader& reader, uint64_t index, Tensor* tensor) {
  QUANTD_RETURN_IF_ERROR(reader.Name(&tensor->name, absl::StrCat("the name of tensor ", index)));
  const std::string what = absl::StrCat("tensor '", tensor->name, "'");
  uint32_t rank, type;
  QUANTD_RETURN_IF_ERROR(reader.Number(&rank, what));
  if (rank > kMaxRank) {
    return Reader::Bad("$0 has $1 dimensions, $2 are the most", what, rank, kMaxRank);
  }
  tensor->shape.resize(rank);
  for (uint32_t i = rank; i-- > 0;) {
    uint64_t length;
    QUANTD_RETURN_IF_ERROR(reader.Number(&length, what));
    if (length > INT64_MAX) {
      return Reader::Bad("$0 has a dimension of $1", what, length);
    }
    tensor->shape[i] = static_cast<int64_t>(length);
  }
  QUANTD_RETURN_IF_ERROR(reader.Number(&type, what));
  QUANTD_RETURN_IF_ERROR(reader.Number(&tensor->offset, what));
  const GgmlType* ggml = FindGgml(int64_t{type});
  if (ggml == nullptr) {
    return Reader::Bad("$0 is of type $1, which is not known", what, type);
  }
  tensor->dtype = ggml->name;
  tensor->type = FloatType(ggml->name);
  tensor->ggml_type = ggml->number;
  const absl::StatusOr<int64_t> elements = ElementCount(tensor->shape, "shape");
  if (!elements.ok()) return Reader::Bad("$0: $1", what, elements.status().message());
  const int64_t columns = rank == 0 ? 1 : tensor->shape.back();
  if (columns % ggml->elements != 0) {
    return Reader::Bad("$0 has rows of $1, blocks of $2 have $3", what, columns, ggml->name,
                       ggml->elements);
  }
  const auto bytes = static_cast<unsigned __int128>(*elements) / ggml->elements * ggml->bytes;
  if (bytes > INT64_MAX) return Reader::Bad("$0 takes more than 2^63 bytes", what);
  tensor->bytes = static_cast<uint64_t>(bytes);
  return absl::OkStatus();
}

// Converts offsets to positions in the file.
absl::Status PlaceTensors(uint64_t begin, uint64_t file_size, GgufHeader* header) {
  const uint64_t space = file_size - std::min(file_size, begin);
  std::vector<const Tensor*> order;
  for (Tensor& tensor : header->tensors) {
    const std::string what = absl::StrCat("tensor '", tensor.name, "'");
    if (tensor.offset % header->alignment != 0) {
      return Reader::Bad("$0 lies at $1, which is not a multiple of $2", what, tensor.offset,
                         header->alignment);
    }
    if (tensor.offset > space || tensor.bytes > space - tensor.offset) {
      return Reader::Bad("$0 takes $1 bytes at $2, the file has $3 bytes of data (truncated?)",
                         what, tensor.bytes, tensor.offset, space);
    }
    tensor.offset += begin;
    if (tensor.bytes > 0) order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(),
            [](const Tensor* a, const Tensor* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset) {
      return Reader::Bad("tensors '$0' and '$1' share bytes", order[i - 1]->name, order[i]->name);
    }
  }
  return absl::OkStatus();
}

template <typename T>
void Append(T value, std::string* to) {
  for (size_t i = 0; i < sizeof(T); ++i) to->push_back(static_cast<char>(value >> (8 * i)));
}

void AppendString(absl::string_view text, std::string* to) {
  Append<uint64_t>(text.size(), to);
  to->append(text.data(), text.size());
}

}  // namespace

const GgmlType* FindGgml(int64_t number) {
  for (const GgmlType& type : kTypes) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

const GgmlType* FindGgml(absl::string_view dtype) {
  for (const GgmlType& type : kTypes) {
    if (IsPlain(type) && type.name == dtype) return &type;
  }
  return nullptr;
}

absl::StatusOr<GgufHeader> ReadGguf(const OpenFile& file, uint64_t file_size) {
  Reader reader(file, file_size);
  std::array<uint8_t, 4> magic;
  uint32_t version;
  uint64_t tensors, keys;
  QUANTD_RETURN_IF_ERROR(reader.Bytes(magic.data(), magic.size(), "the magic"));
  if (std::memcmp(magic.data(), "GGUF", 4) != 0) {
    return Reader::Bad("it does not begin with GGUF");
  }
  QUANTD_RETURN_IF_ERROR(reader.Number(&version, "the version"));
  if (version != 2 && version != 3) {
    return Reader::Bad("version $0, only 2 and 3 are read$1", version,
                       (version & 0xffff) == 0 ? " (big endian?)" : "");
  }
  QUANTD_RETURN_IF_ERROR(reader.Number(&tensors, "the number of tensors"));
  QUANTD_RETURN_IF_ERROR(reader.Number(&keys, "the number of keys"));
  // A key takes at least 14 bytes, a tensor 25.
  for (const auto& [count, most, bytes, what] :
       {std::tuple(keys, kMaxKeys, 14, "keys"), {tensors, cli::kMaxTensors, 25, "tensors"}}) {
    if (count > reader.left() / bytes) {
      return Reader::Bad("it claims $0 $1, the file has $2 bytes", count, what, file_size);
    }
    if (count > most) {
      return Reader::Bad("it has $0 $1, $2 are the most", count, what, most);
    }
  }
  GgufHeader header;
  QUANTD_RETURN_IF_ERROR(ReadKeys(reader, keys, &header));
  header.tensors.reserve(tensors);
  uint64_t dimensions = 0;
  for (uint64_t i = 0; i < tensors; ++i) {
    Tensor& tensor = header.tensors.emplace_back();
    QUANTD_RETURN_IF_ERROR(ReadTensor(reader, i, &tensor));
    dimensions += tensor.shape.size();
    if (dimensions > kMaxDimensions) {
      return Reader::Bad("its tensors have more than $0 dimensions in all", kMaxDimensions);
    }
  }
  QUANTD_RETURN_IF_ERROR(CheckNamesDiffer(header.tensors, "tensor"));
  const uint64_t mask = header.alignment - 1;
  QUANTD_RETURN_IF_ERROR(PlaceTensors((reader.position() + mask) & ~mask, file_size, &header));
  return header;
}

std::string GgufStart(uint64_t tensors, uint64_t keys) {
  std::string text = "GGUF";
  Append<uint32_t>(3, &text);
  Append(tensors, &text);
  Append(keys, &text);
  return text;
}

std::string GgufStringKey(absl::string_view name, absl::string_view value) {
  std::string text;
  AppendString(name, &text);
  Append(kGgufString, &text);
  AppendString(value, &text);
  return text;
}

std::string GgufUint32Key(absl::string_view name, uint32_t value) {
  std::string text;
  AppendString(name, &text);
  Append(kGgufUint32, &text);
  Append(value, &text);
  return text;
}

std::string GgufTensor(absl::string_view name, absl::Span<const int64_t> shape, int ggml_type,
                       uint64_t offset) {
  std::string text;
  AppendString(name, &text);
  Append(static_cast<uint32_t>(shape.size()), &text);
  for (size_t i = shape.size(); i-- > 0;) Append(static_cast<uint64_t>(shape[i]), &text);
  Append(static_cast<uint32_t>(ggml_type), &text);
  Append(offset, &text);
  return text;
}

}  // namespace quantd::checkpoints
