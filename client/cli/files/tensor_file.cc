#include "files/tensor_file.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "status_macros.h"

namespace quantd::cli {

absl::StatusOr<uint64_t> StoredBytes(int bits, absl::Span<const int64_t> shape) {
  QUANTD_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(shape, "shape"));
  const auto size = (static_cast<unsigned __int128>(elements) * bits + 7) / 8;
  if (size > INT64_MAX) return absl::InvalidArgumentError("the tensor's size overflows");
  return static_cast<uint64_t>(size);
}

absl::StatusOr<FileFormat> FormatOfPath(absl::string_view path) {
  if (absl::EndsWithIgnoreCase(path, ".npy")) return FileFormat::kNpy;
  if (absl::EndsWithIgnoreCase(path, ".safetensors")) return FileFormat::kSafetensors;
  if (absl::EndsWithIgnoreCase(path, ".npz")) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": a .npz is a zip of .npy files; unpack it (unzip ", path, ") and name one"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": the name must end in .npy or .safetensors"));
}

absl::StatusOr<TensorFile> OpenTensorFile(const std::string& path) {
  QUANTD_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> mapped, MappedFile::Open(path));
  QUANTD_ASSIGN_OR_RETURN(const FileFormat format, FormatOfPath(path));
  TensorFile file;
  file.path = path;
  file.format = format;
  file.mapped = std::move(mapped);
  absl::Status status;
  if (file.format == FileFormat::kNpy) {
    absl::StatusOr<StoredTensor> tensor = ParseNpy(file.mapped->bytes());
    status = tensor.status();
    if (status.ok()) file.tensors.push_back(*std::move(tensor));
  } else {
    status = ParseSafetensors(file.mapped->bytes(), &file);
  }
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
  }
  return file;
}

}  // namespace quantd::cli
