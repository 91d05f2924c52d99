// The tensor of an input file of embeddings, or of any values: a .npy, with the owners of its
// memory.
#ifndef QUANTD_CLI_COMMANDS_INPUT_H_
#define QUANTD_CLI_COMMANDS_INPUT_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "files/source.h"
#include "quantd/parameters.h"

namespace quantd::cli {

// Must not move once it is opened.
struct Input {
  std::optional<Source> npy;
  OutputFile scratch;  // for data that is not in the file in the right form
  TensorView view;
};

// `output`: scratch is made in its folder. Returns INVALID_ARGUMENT with the path for another
// format, and for errors in the file.
absl::Status OpenInput(const std::string& path, const std::string& output, Input* input);
// Takes a tensor of an open file.
absl::Status TakeTensor(const TensorFile& file, const StoredTensor& tensor,
                        const std::string& output, Input* input);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_INPUT_H_
