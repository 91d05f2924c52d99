#include "commands/input.h"

#include "absl/strings/str_cat.h"
#include "status_macros.h"

namespace quantd::cli {

absl::Status TakeTensor(const TensorFile& file, const StoredTensor& tensor,
                        const std::string& output, Input* input) {
  QUANTD_ASSIGN_OR_RETURN(input->npy, Source::Of(file, tensor));
  QUANTD_ASSIGN_OR_RETURN(input->view, input->npy->View(output, &input->scratch));
  return absl::OkStatus();
}

absl::Status OpenInput(const std::string& path, const std::string& output, Input* input) {
  QUANTD_ASSIGN_OR_RETURN(const TensorFile file, OpenTensorFile(path));
  if (file.format == FileFormat::kNpy) return TakeTensor(file, file.tensors[0], output, input);
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is not a .npy file; embeddings are read from these"));
}

}  // namespace quantd::cli
