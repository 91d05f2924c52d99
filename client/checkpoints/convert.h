// Converts a model to and from the layouts that other software loads; core/LAYOUTS.md has the
// arithmetic, client/CHECKPOINTS.md which layout to take.
//
//   absl::StatusOr<Report> report = Convert(options, executor, interrupted, progress);
//
// Memory: what the headers take, and some MiB a thread, whatever the size of tensors and shards.
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
  std::string to;          // a name of TargetNames() (target.h)
  std::string only, skip;  // regular expressions (RE2) of names
  bool all = false;        // whatever its name, a tensor of two dimensions is a weight
  bool resume = false, force = false;
  std::string report;  // a file that the caller writes later: not in the model, OUT or OUT.partial
  // Not empty: make these shards alone, in OUT.partial, and leave the rest to others and to a last
  // call with `resume` and without shards. Several processes may do so at the same time.
  std::vector<std::string> shards;
};

// How far it is, in bytes that are read. Called on the caller's thread, often.
using ProgressFunction =
    absl::FunctionRef<void(uint64_t done, uint64_t total, absl::string_view file)>;

// What Convert would do: headers alone are read, nothing is written.
absl::StatusOr<Report> DryRun(const ConvertOptions& options);

// Makes OUT, whole or not at all. Work is done in OUT.partial, which a refusal (IsWeightError)
// removes, and any other error and CANCELLED (`interrupted` said so) leave for `resume`, without
// unfinished files. Errors: errors.h; INVALID_ARGUMENT for wrong options.
absl::StatusOr<Report> Convert(const ConvertOptions& options, const Executor& executor,
                               Interrupted interrupted, ProgressFunction progress);

// The names of a folder's shards, for ConvertOptions::shards.
absl::StatusOr<std::vector<std::string>> ShardsOf(const std::string& model);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_CONVERT_H_
