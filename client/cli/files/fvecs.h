// .fvecs: embeddings in the format of vector search benchmarks. Each one is its length, a
// little-endian int32, followed by that number of floats:
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

// The embeddings as FLOAT of shape [embeddings, length], copied without their lengths into
// `scratch`, which is made in the folder of `path` and must outlive the view. Returns
// INVALID_ARGUMENT, with the embedding's number, if one is truncated or has another length than the
// first.
absl::StatusOr<TensorView> ReadFvecs(absl::Span<const uint8_t> file, const std::string& path,
                                     OutputFile* scratch);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_FVECS_H_
