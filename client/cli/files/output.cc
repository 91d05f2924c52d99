#include "files/output.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "files/file_names.h"
#include "files/signals.h"
#include "status_macros.h"

namespace quantd::cli {

namespace {

std::string NpyPathOf(absl::string_view path, absl::string_view suffix) {
  return suffix.empty() ? std::string(path) : absl::StrCat(NpyStem(path), ".", suffix, ".npy");
}

std::string DescriptionOf(absl::string_view path) {
  return absl::StrCat(NpyStem(path), ".quantization.json");
}

}  // namespace

std::vector<std::string> FilesOfOutput(const std::string& path,
                                       absl::Span<const absl::string_view> suffixes) {
  std::vector<std::string> files = {path};
  if (const auto format = FormatOfPath(path); !format.ok() || *format != FileFormat::kNpy) {
    return files;
  }
  for (const absl::string_view suffix : suffixes) {
    if (!suffix.empty()) files.push_back(NpyPathOf(path, suffix));
  }
  files.push_back(DescriptionOf(path));
  return files;
}

absl::Status CheckMayRemoveDescription(const std::string& path, bool force) {
  const std::string description = DescriptionOf(path);
  QUANTD_RETURN_IF_ERROR(CheckMayWrite(description, force));
  const absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(description);
  if (absl::IsNotFound(file.status())) return absl::OkStatus();
  if (!file.ok()) return file.status();
  const absl::Span<const uint8_t> bytes = (*file)->bytes();
  const absl::StatusOr<std::vector<QuantizedEntry>> entries =
      QuantizedEntriesFromJson({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (const QuantizedEntry& entry : entries.value_or(std::vector<QuantizedEntry>())) {
    if (entry.y.tensor == NameOf(path)) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      description, " would be taken for the description of ", path,
      ", which has none, and is of another file; move it away, or write to another file"));
}

Output::Output(std::string path) : path_(std::move(path)), format_(*FormatOfPath(path_)) {}

std::vector<std::string> Output::Files() const {
  std::vector<absl::string_view> suffixes;
  for (const Part& part : parts_) suffixes.push_back(part.suffix);
  return FilesOfOutput(path_, suffixes);
}

size_t Output::Add(const std::string& name, absl::string_view suffix, DataType type,
                   const Shape& shape) {
  const bool npy = format_ == FileFormat::kNpy, is_packed = Info(type).bits < 8;
  // Rows of FLOAT6 and FLOAT4 that share a byte have no dtype: see client/FORMAT.md.
  const bool shares_bytes =
      is_packed && (shape.empty() || shape.back() % 8 * Info(type).bits % 8 != 0);
  const ElementType& element = ElementTypeOf(type);
  const absl::string_view name_in_file = npy ? element.npy : element.safetensors;
  // numpy's "f1" is not a FLOAT8. "V1" keeps readers from using it as a number, and
  // a.view(ml_dtypes.float8_e5m2) reads it.
  const bool named = !name_in_file.empty() && name_in_file != "f1" && !shares_bytes;
  const auto bytes = static_cast<int64_t>(StoredBytes(element.bits, shape).value_or(0));
  const size_t index = AddStored(name, named ? element : ElementTypeOf(DataType::kUint8),
                                 named || !is_packed ? shape : Shape{bytes});
  Part& part = parts_[index];
  part.suffix = std::string(suffix);
  part.type = type;
  part.shape = shape;
  if (npy && !named && !is_packed) part.descr = "|V1";
  return index;
}

size_t Output::AddStored(const std::string& name, const ElementType& type, const Shape& shape) {
  Part& part = parts_.emplace_back();
  part.stored.name = name;
  part.stored.type = &type;
  part.stored.shape = part.shape = shape;
  part.stored.byte_size = StoredBytes(type.bits, shape).value_or(0);  // it was valid in a file
  part.type = type.data_type;
  return parts_.size() - 1;
}

Reference Output::ReferenceTo(size_t index) const {
  const Part& part = parts_[index];
  std::string name = part.stored.name;
  if (format_ == FileFormat::kNpy) {
    name = NameOf(NpyPathOf(path_, part.suffix));
  }
  return {name, part.type, part.shape};
}

absl::Status Output::CreateText(const std::string& path, const std::string& text) {
  OutputFile& file = files_.emplace_back();
  const absl::Status status = file.Create(path, text.size(), force_);
  if (status.ok() && !text.empty()) std::memcpy(file.bytes().data(), text.data(), text.size());
  return status;
}

absl::Status Output::CreateNpy() {
  for (const Part& part : parts_) {
    const std::string descr =
        part.descr.empty()
            ? absl::StrCat(part.stored.type->bits == 8 ? "|" : "<", part.stored.type->npy)
            : part.descr;
    const std::string header = NpyHeader(descr, part.stored.shape);
    OutputFile& file = files_.emplace_back();
    QUANTD_RETURN_IF_ERROR(
        file.Create(NpyPathOf(path_, part.suffix), header.size() + part.stored.byte_size, force_));
    std::memcpy(file.bytes().data(), header.data(), header.size());
    spans_.push_back(file.bytes().subspan(header.size()));
  }
  if (const auto text = metadata_.find("quantd"); text != metadata_.end()) {
    return CreateText(DescriptionOf(path_), text->second);
  }
  return CheckMayRemoveDescription(path_, force_);
}

absl::Status Output::CheckHeader(uint64_t bytes) const {
  HeaderSizes sizes = {.bytes = bytes, .tensors = parts_.size()};
  uint64_t names = 0;
  for (const Part& part : parts_) {
    names += part.stored.name.size();
    sizes.dimensions += part.stored.shape.size();
  }
  sizes.bytes = std::max(sizes.bytes, names);
  for (const auto& [key, value] : metadata_) sizes.metadata_bytes += key.size() + value.size();
  return CheckSafetensorsHeader(path_, sizes);
}

absl::Status Output::CreateSafetensors() {
  // By decreasing size, like the format's own library, so that each is aligned.
  std::vector<size_t> order(parts_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [this](size_t a, size_t b) {
    const int a_bits = parts_[a].stored.type->bits, b_bits = parts_[b].stored.type->bits;
    return a_bits != b_bits ? a_bits > b_bits : a < b;
  });
  absl::flat_hash_set<absl::string_view> names;
  std::vector<StoredTensor> stored;
  uint64_t size = 0;
  for (const size_t index : order) {
    StoredTensor& tensor = parts_[index].stored;
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the output would hold two tensors named '", tensor.name, "'"));
    }
    tensor.offset = size;
    size += tensor.byte_size;
    stored.push_back(tensor);
  }
  const std::string header = SafetensorsHeader(stored, metadata_);
  QUANTD_RETURN_IF_ERROR(CheckHeader(header.size() - 8));
  OutputFile& file = files_.emplace_back();
  QUANTD_RETURN_IF_ERROR(file.Create(path_, header.size() + size, force_));
  std::memcpy(file.bytes().data(), header.data(), header.size());
  for (const Part& part : parts_) {
    spans_.push_back(
        file.bytes().subspan(header.size() + part.stored.offset, part.stored.byte_size));
  }
  return absl::OkStatus();
}

absl::Status Output::Create(bool force) {
  force_ = force;
  for (const auto& [path, text] : texts_) {
    QUANTD_RETURN_IF_ERROR(CheckMayWrite(path, force));
  }
  return format_ == FileFormat::kNpy ? CreateNpy() : CreateSafetensors();
}

absl::Status Output::Commit() {
  for (const auto& [path, text] : texts_) {
    QUANTD_RETURN_IF_ERROR(CreateText(path, text));
  }
  for (OutputFile& file : files_) {
    QUANTD_RETURN_IF_ERROR(file.Sync());
  }
  const SignalsWait wait;
  for (size_t i = 0; i < files_.size(); ++i) {
    absl::Status status = files_[i].Publish();
    if (status.ok()) continue;
    // All files or none, as long as nothing was replaced.
    for (size_t done = 0; done < i; ++done) files_[done].Withdraw();
    return status;
  }
  if (format_ == FileFormat::kNpy && metadata_.find("quantd") == metadata_.end()) {
    unlink(DescriptionOf(path_).c_str());
  }
  return absl::OkStatus();
}

}  // namespace quantd::cli
