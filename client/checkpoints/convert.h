// Converts a model to and from the layouts of other software. core/LAYOUTS.md defines the
// arithmetic, client/CHECKPOINTS.md says which layout to use.
//
//   absl::StatusOr<Report> report = Convert(options, executor, interrupted, progress);
//
// Memory: that of the headers, and some MiB per thread, independent of the sizes of tensors and
// shards.
#ifndef QUANTD_CHECKPOINTS_CONVERT_H_
#define QUANTD_CHECKPOINTS_CONVERT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "checkpoints/report.h"
#include "quantd/executor.h"

namespace quantd::checkpoints {

struct ConvertOptions {
  std::string model;       // a folder, a .safetensors or a .gguf
  std::string out;         // a folder for a folder, a file for a file; for gguf: always one .gguf
  std::string to;          // a name of TargetNames() (selection.h)
  std::string only, skip;  // regular expressions (RE2) of names
  bool all = false;        // every tensor of two dimensions is a weight, whatever its name
  bool resume = false, force = false;
  std::string report;  // a file that the caller writes later: not in the model, OUT or OUT.partial
  // Not empty: convert only these shards, in OUT.partial, and leave the rest to other processes and
  // to a final call with `resume` and without shards. Several processes may do so at the same time.
  std::vector<std::string> shards;
};

// Reports progress, in bytes that were read. Called often, on the caller's thread.
using ProgressFunction =
    absl::FunctionRef<void(uint64_t done, uint64_t total, absl::string_view file)>;

// Reports what Convert would do: reads only headers and writes nothing.
absl::StatusOr<Report> DryRun(const ConvertOptions& options);

// Makes OUT completely or not at all. It works in OUT.partial. A refusal (IsWeightError) removes
// that folder; any other error and CANCELLED (`interrupted` returned true) leave it for `resume`,
// without unfinished files. Errors: see errors.h; INVALID_ARGUMENT for wrong options.
absl::StatusOr<Report> Convert(const ConvertOptions& options, const Executor& executor,
                               Interrupted interrupted, ProgressFunction progress);

// The names of a folder's shards, for ConvertOptions::shards.
absl::StatusOr<std::vector<std::string>> ShardsOf(const std::string& model);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_CONVERT_H_
