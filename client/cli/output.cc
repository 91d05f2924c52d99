#include "output.h"

#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace quantd::cli {
namespace {

// How a type is stored. FLOAT8E8M0 and FLOAT4E2M1 have names only in recent versions of the format,
// and older readers refuse the whole file over an unknown name: they are written as bytes.
StoredTensor StoredForm(const OutputPart& part, FileFormat format) {
  StoredTensor stored;
  stored.name = part.name;
  stored.type = part.type;
  stored.shape = part.shape;
  const bool named = format == FileFormat::kSafetensors
                         ? !part.type->safetensors.empty() &&
                               part.type->data_type != DataType::kFloat8E8M0 &&
                               part.type->data_type != DataType::kFloat4E2M1
                         : !part.type->npy.empty() && part.type->npy != "f1";
  const int64_t elements = Product(part.shape);
  stored.byte_size = (static_cast<unsigned __int128>(elements) * part.type->bits + 7) / 8;
  if (named || part.verbatim) return stored;
  stored.type = &ElementTypeOf(DataType::kUint8);
  if (part.type->bits < 8) stored.shape = {static_cast<int64_t>(stored.byte_size)};
  return stored;
}

std::string Descr(const StoredTensor& stored, const OutputPart& part) {
  // A FLOAT8 is not a number to numpy: "V1" keeps it from being taken for one, and
  // a.view(ml_dtypes.float8_e4m3fn) reads it.
  if (part.type->npy.empty() && part.type->bits == 8) return "|V1";
  if (part.type->npy == "f1") return "|V1";
  return absl::StrCat(stored.type->bits == 8 ? "|" : "<", stored.type->npy);
}

}  // namespace

OutputPart Part(absl::string_view name, absl::string_view suffix, DataType type,
                absl::Span<const int64_t> shape) {
  return {std::string(name), std::string(suffix), &ElementTypeOf(type),
          Shape(shape.begin(), shape.end())};
}

std::string SidecarPath(absl::string_view npy_path, absl::string_view suffix) {
  return absl::StrCat(npy_path.substr(0, npy_path.size() - 4), ".", suffix, ".npy");
}

Output::Output(std::string path) : path_(std::move(path)), format_(*FormatOfPath(path_)) {}

std::string Output::NpyPath(absl::string_view suffix) const {
  return suffix.empty() ? path_ : SidecarPath(path_, suffix);
}

size_t Output::Add(const OutputPart& part) {
  parts_.push_back(part);
  stored_.push_back(StoredForm(part, format_));
  return parts_.size() - 1;
}

std::string Output::ReferenceTo(size_t index) const {
  if (format_ == FileFormat::kSafetensors) return parts_[index].name;
  const std::string path = NpyPath(parts_[index].suffix);
  return path.substr(path.find_last_of('/') + 1);
}

absl::Status Output::Create() {
  if (format_ == FileFormat::kNpy) {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const std::string header = NpyHeader(Descr(stored_[i], parts_[i]), stored_[i].shape);
      OutputFile& file = files_.emplace_back();
      const absl::Status status =
          file.Create(NpyPath(parts_[i].suffix), header.size() + stored_[i].byte_size);
      if (!status.ok()) return status;
      std::memcpy(file.bytes().data(), header.data(), header.size());
      spans_.push_back(file.bytes().subspan(header.size()));
    }
    if (const auto text = metadata_.find("quantd"); text != metadata_.end()) {
      OutputFile& file = files_.emplace_back();
      const std::string path =
          absl::StrCat(path_.substr(0, path_.size() - 4), ".quantization.json");
      const absl::Status status = file.Create(path, text->second.size());
      if (!status.ok()) return status;
      std::memcpy(file.bytes().data(), text->second.data(), text->second.size());
    }
    return absl::OkStatus();
  }

  std::set<absl::string_view> names;
  uint64_t size = 0;
  for (StoredTensor& tensor : stored_) {
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the output would hold two tensors named '", tensor.name, "'"));
    }
    tensor.offset = size;
    size += tensor.byte_size;
  }
  const std::string header = SafetensorsHeader(stored_, metadata_);
  OutputFile& file = files_.emplace_back();
  absl::Status status = file.Create(path_, header.size() + size);
  if (!status.ok()) return status;
  std::memcpy(file.bytes().data(), header.data(), header.size());
  for (const StoredTensor& tensor : stored_) {
    spans_.push_back(file.bytes().subspan(header.size() + tensor.offset, tensor.byte_size));
  }
  return absl::OkStatus();
}

absl::Status Output::Commit() {
  for (OutputFile& file : files_) {
    if (const absl::Status status = file.Commit(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace quantd::cli
