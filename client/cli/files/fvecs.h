// .fvecs: embeddings as benchmarks of vector search keep them, each a little endian int32, its
// length, and so many floats:
//
//   03 00 00 00 | x0 x1 x2 | 03 00 00 00 | x0 x1 x2 | ...
#ifndef QUANTD_CLI_FILES_FVECS_H_
#define QUANTD_CLI_FILES_FVECS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "files/output_file.h"
#include "quantd/parameters.h"

namespace quantd::cli {

// The embeddings: FLOAT of shape [embeddings, length], copied without their lengths into `scratch`,
// which is made in the folder of `path` and must outlive the view. INVALID_ARGUMENT, naming the
// embedding, when one has another length than the first, or is cut off.
absl::StatusOr<TensorView> ReadFvecs(absl::Span<const uint8_t> file, const std::string& path,
                                     OutputFile* scratch);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_FVECS_H_
