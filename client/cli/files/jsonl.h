// .jsonl: one embedding per line, as a JSON array of numbers, or an object with a member that is
// such an array. Blank lines are skipped.
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

// FLOAT of shape [lines, numbers per line], written to `scratch`, which is made in the folder of
// `path` and must outlive the view. Memory: at most one key. Returns INVALID_ARGUMENT, with the
// line number, if a line is not such an array, has another length than the first, or is over 64
// MiB.
absl::StatusOr<TensorView> ReadJsonl(absl::Span<const uint8_t> file, const std::string& column,
                                     const std::string& path, OutputFile* scratch);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_JSONL_H_
