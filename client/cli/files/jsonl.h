// .jsonl: embeddings, one a line: a JSON array of numbers, or an object with such an array under a
// name. Blank lines are passed by.
//
//   [0.25, -1, 3e-2]          {"id": 7, "embedding": [0.25, -1, 3e-2]}
#ifndef QUANTD_CLI_FILES_JSONL_H_
#define QUANTD_CLI_FILES_JSONL_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "files/output_file.h"
#include "quantd/parameters.h"

namespace quantd::cli {

// FLOAT of shape [lines, numbers of a line], written to `scratch`, which is made in the folder of
// `path` and must outlive the view. Memory: at most a key's. INVALID_ARGUMENT, naming the line,
// for what is not such an array, one of another length than the first, and lines over 64 MiB.
absl::StatusOr<TensorView> ReadJsonl(absl::Span<const uint8_t> file, const std::string& column,
                                     const std::string& path, OutputFile* scratch);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_JSONL_H_
