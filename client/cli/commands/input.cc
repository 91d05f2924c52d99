#include "commands/input.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "files/fvecs.h"
#include "files/jsonl.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

absl::Status Named(const absl::Status& status, const std::string& path) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

}  // namespace

absl::Status TakeTensor(const TensorFile& file, const StoredTensor& tensor,
                        const std::string& output, Input* input) {
  QUANTD_ASSIGN_OR_RETURN(input->npy, Source::Of(file, tensor));
  QUANTD_ASSIGN_OR_RETURN(input->view, input->npy->View(output, &input->scratch));
  return absl::OkStatus();
}

absl::Status OpenInput(const std::string& path, const std::string& column,
                       const std::string& output, Input* input) {
  const bool fvecs = absl::EndsWithIgnoreCase(path, ".fvecs");
  if (!fvecs && !absl::EndsWithIgnoreCase(path, ".jsonl")) {
    QUANTD_ASSIGN_OR_RETURN(const TensorFile file, OpenTensorFile(path));
    if (file.format != FileFormat::kNpy) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, " is not a .npy, .fvecs or .jsonl file; embeddings are read from these"));
    }
    return TakeTensor(file, file.tensors[0], output, input);
  }
  QUANTD_ASSIGN_OR_RETURN(input->mapped, MappedFile::Open(path));
  const absl::Span<const uint8_t> bytes = input->mapped->bytes();
  absl::StatusOr<TensorView> view = fvecs ? ReadFvecs(bytes, output, &input->scratch)
                                          : ReadJsonl(bytes, column, output, &input->scratch);
  if (!view.ok()) return Named(view.status(), path);
  input->view = *std::move(view);
  return absl::OkStatus();
}

}  // namespace quantd::cli
