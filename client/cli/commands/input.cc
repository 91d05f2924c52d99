#include "commands/input.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "files/fvecs.h"
#include "files/jsonl.h"

namespace quantd::cli {
namespace {

absl::Status Named(const absl::Status& status, const std::string& path) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

}  // namespace

absl::Status TakeTensor(const TensorFile& file, const StoredTensor& tensor,
                        const std::string& output, Input* input) {
  absl::StatusOr<Source> source = Source::Of(file, tensor);
  if (!source.ok()) return source.status();
  input->npy = *std::move(source);
  absl::StatusOr<TensorView> view = input->npy->View(output, &input->scratch);
  if (!view.ok()) return view.status();
  input->view = *std::move(view);
  return absl::OkStatus();
}

absl::Status OpenInput(const std::string& path, const std::string& column,
                       const std::string& output, Input* input) {
  const bool fvecs = absl::EndsWithIgnoreCase(path, ".fvecs");
  if (absl::EndsWithIgnoreCase(path, ".parquet")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": Parquet is read by the Python client, quantd.arrow"));
  }
  if (!fvecs && !absl::EndsWithIgnoreCase(path, ".jsonl")) {
    const absl::StatusOr<TensorFile> file = OpenTensorFile(path);
    if (!file.ok()) return file.status();
    if (file->format != FileFormat::kNpy) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, " is not a .npy, .fvecs or .jsonl file; embeddings are read from these"));
    }
    return TakeTensor(*file, file->tensors[0], output, input);
  }
  absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  input->mapped = *std::move(file);
  const absl::Span<const uint8_t> bytes = input->mapped->bytes();
  absl::StatusOr<TensorView> view = fvecs ? ReadFvecs(bytes, output, &input->scratch)
                                          : ReadJsonl(bytes, column, output, &input->scratch);
  if (!view.ok()) return Named(view.status(), path);
  input->view = *std::move(view);
  return absl::OkStatus();
}

}  // namespace quantd::cli
