#include "files/output.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "files/signals.h"

namespace quantd::cli {

Output::Output(std::string path) : path_(std::move(path)), format_(*FormatOfPath(path_)) {}

std::string Output::NpyPath(absl::string_view suffix) const {
  return suffix.empty() ? path_ : absl::StrCat(NpyStem(path_), ".", suffix, ".npy");
}

size_t Output::Add(const std::string& name, absl::string_view suffix, DataType type,
                   const Shape& shape) {
  const size_t index = AddStored(name, ElementTypeOf(type), shape);
  Part& part = parts_[index];
  part.suffix = std::string(suffix);
  part.type = type;
  const bool npy = format_ == FileFormat::kNpy;
  // Rows of FLOAT6 and FLOAT4 that share a byte have no dtype: client/FORMAT.md.
  const bool shares_bytes =
      Info(type).bits < 8 && (shape.empty() || shape.back() % 8 * Info(type).bits % 8 != 0);
  absl::string_view name_in_file = npy ? part.stored.type->npy : part.stored.type->safetensors;
  // numpy's "f1" is no FLOAT8: "V1" keeps it from being taken for a number, and
  // a.view(ml_dtypes.float8_e5m2) reads it.
  const bool named = !name_in_file.empty() && name_in_file != "f1" && !shares_bytes;
  if (!named) {
    part.stored.type = &ElementTypeOf(DataType::kUint8);
    if (Info(type).bits < 8) part.stored.shape = {static_cast<int64_t>(part.stored.byte_size)};
  }
  if (npy && !named && Info(type).bits == 8) part.descr = "|V1";
  return index;
}

size_t Output::AddStored(const std::string& name, const ElementType& type, const Shape& shape) {
  Part& part = parts_.emplace_back();
  part.stored.name = name;
  part.stored.type = &type;
  part.stored.shape = part.shape = shape;
  part.stored.byte_size = StoredBytes(type.bits, shape).value_or(0);  // it was one in a file
  part.type = type.data_type;
  return parts_.size() - 1;
}

Reference Output::ReferenceTo(size_t index) const {
  const Part& part = parts_[index];
  std::string name = part.stored.name;
  if (format_ == FileFormat::kNpy) {
    name = NpyPath(part.suffix);
    name = name.substr(name.find_last_of('/') + 1);
  }
  return {name, part.type, part.shape};
}

absl::Status Output::CreateText(const std::string& path, const std::string& text) {
  OutputFile& file = files_.emplace_back();
  const absl::Status status = file.Create(path, text.size(), rules_);
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
    const absl::Status status =
        file.Create(NpyPath(part.suffix), header.size() + part.stored.byte_size, rules_);
    if (!status.ok()) return status;
    std::memcpy(file.bytes().data(), header.data(), header.size());
    spans_.push_back(file.bytes().subspan(header.size()));
  }
  const std::string description = absl::StrCat(NpyStem(path_), ".quantization.json");
  if (const auto text = metadata_.find("quantd"); text != metadata_.end()) {
    return CreateText(description, text->second);
  }
  // One that lies there would be taken for this file's.
  return CheckMayWrite(description, rules_);
}

absl::Status Output::CreateSafetensors() {
  // By falling size, as the format's own library does, so that each is aligned.
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
  OutputFile& file = files_.emplace_back();
  absl::Status status = file.Create(path_, header.size() + size, rules_);
  if (!status.ok()) return status;
  std::memcpy(file.bytes().data(), header.data(), header.size());
  for (const Part& part : parts_) {
    spans_.push_back(
        file.bytes().subspan(header.size() + part.stored.offset, part.stored.byte_size));
  }
  return absl::OkStatus();
}

absl::Status Output::Create(const OverwriteRules& rules) {
  rules_ = rules;
  for (const auto& [path, text] : texts_) {
    if (path == path_) return absl::InvalidArgumentError(absl::StrCat(path, " is named twice"));
    if (absl::Status status = CheckMayWrite(path, rules); !status.ok()) return status;
  }
  return format_ == FileFormat::kNpy ? CreateNpy() : CreateSafetensors();
}

absl::Status Output::Commit() {
  for (const auto& [path, text] : texts_) {
    if (absl::Status status = CreateText(path, text); !status.ok()) return status;
  }
  for (OutputFile& file : files_) {
    if (absl::Status status = file.Sync(); !status.ok()) return status;
  }
  const SignalsWait wait;
  for (size_t i = 0; i < files_.size(); ++i) {
    absl::Status status = files_[i].Publish();
    if (status.ok()) continue;
    // All or none, as far as nothing was replaced.
    for (size_t done = 0; done < i; ++done) files_[done].Withdraw();
    return status;
  }
  if (format_ == FileFormat::kNpy && metadata_.find("quantd") == metadata_.end()) {
    unlink(absl::StrCat(NpyStem(path_), ".quantization.json").c_str());
  }
  return absl::OkStatus();
}

}  // namespace quantd::cli
