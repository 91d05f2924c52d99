// Makes the tensors of one output file: reads, computes and writes, on all threads.
#ifndef QUANTD_CHECKPOINTS_RUN_H_
#define QUANTD_CHECKPOINTS_RUN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "checkpoints/conversion.h"
#include "checkpoints/files.h"
#include "checkpoints/output_plan.h"
#include "quantd/convert_weight.h"
#include "quantd/executor.h"

namespace quantd::checkpoints {

// Bytes that were read, for the progress display.
using Counter = std::atomic<uint64_t>;

class Runner {
 public:
  // `interrupted` and `executor` must outlive the runner.
  Runner(const Model& model, const Conversion& conversion, const Executor& executor,
         Interrupted interrupted, Counter* counter)
      : model_(model),
        conversion_(conversion),
        executor_(executor),
        alone_(1),
        interrupted_(interrupted),
        counter_(*counter),
        largest_(conversion.sets.size()) {}

  // Runs all jobs and stores the texts in `plan`. Returns the errors of quantd/convert_weight.h as
  // WeightErrors, for the first weight with an error; CANCELLED; or errors of files.
  absl::Status Run(OutputFile* plan, PartialFile* file);
  // The bytes that Run reads for a plan: twice those of a weight that is measured first.
  uint64_t BytesToRead(const OutputFile& plan) const;

 private:
  using Task = std::function<absl::Status(size_t index, const Executor&)>;

  // Runs tasks with these sizes: small ones in parallel, large ones one after another, each on all
  // threads. Returns the first error in the order of the tasks.
  absl::Status RunTasks(absl::Span<const uint64_t> bytes, const Task& task) const;
  absl::Status MeasureFor(absl::Span<const Job> jobs);
  absl::Status RunJob(const Job& job, OutputFile* plan, PartialFile* file,
                      const Executor& executor) const;
  absl::Status Encode(const Job& job, Layout layout, OutputFile* plan, PartialFile* file,
                      const Executor& executor) const;
  absl::Status Decode(const Job& job, const OutputFile& plan, PartialFile* file,
                      const Executor& executor) const;
  absl::Status Copy(const Job& job, const OutputFile& plan, PartialFile* file,
                    const Executor& executor) const;
  absl::Status DecodeTransposed(const QuantizedWeight& weight, uint64_t offset, PartialFile* file,
                                const Executor& executor) const;
  absl::Status Cast(const Job& job, const OutputFile& plan, PartialFile* file,
                    const Executor& executor) const;
  bool IsMeasured(const Job& job) const;

  const Model& model_;
  const Conversion& conversion_;
  const Executor& executor_;
  const Executor alone_;
  const Interrupted interrupted_;
  Counter& counter_;
  // The results of MeasureFor: for sets, and for the weights of the current jobs.
  std::vector<std::optional<float>> largest_;
  absl::flat_hash_map<const Tensor*, WeightFacts> facts_;
};

// Writes the beginning of a file and its texts after its jobs are done, and renames the file.
absl::Status FinishFile(const Model& model, OutputFile* plan, PartialFile* file);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_RUN_H_
