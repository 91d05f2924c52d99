// The tensor of an input file of embeddings, or of any values: .npy, .fvecs or .jsonl, with what
// keeps it.
#ifndef QUANTD_CLI_COMMANDS_INPUT_H_
#define QUANTD_CLI_COMMANDS_INPUT_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "files/mapped_file.h"
#include "files/source.h"
#include "quantd/parameters.h"

namespace quantd::cli {

// Stays where it is once it is opened.
struct Input {
  std::shared_ptr<const MappedFile> mapped;  // of a .fvecs or .jsonl
  std::optional<Source> npy;
  OutputFile scratch;  // of what does not lie in the file as it is wanted
  TensorView view;
};

// `output`: in whose folder scratch is made. `column`: of a .jsonl's objects. INVALID_ARGUMENT with
// the path for another format, and for what is wrong with the file.
absl::Status OpenInput(const std::string& path, const std::string& column,
                       const std::string& output, Input* input);
// A tensor of a file that is open.
absl::Status TakeTensor(const TensorFile& file, const StoredTensor& tensor,
                        const std::string& output, Input* input);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_INPUT_H_
