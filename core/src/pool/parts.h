// Computes parts of an operation separately, several at the same time.
#ifndef QUANTD_SRC_POOL_PARTS_H_
#define QUANTD_SRC_POOL_PARTS_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "pool/tasks.h"
#include "quantd/quantization_error.h"

namespace quantd {

// Calls run(part, sums) for parts 0 to parts - 1. `run` is made by make_run() for each task, so
// that its memory is reused for all its parts. Returns the error of the first part that has one.
// Unless `sums` is null, each part has its own sums (else null), which are added in the order of
// the parts: the result is the same for any number of threads.
template <typename MakeRun>
absl::Status RunParts(size_t parts, Workers workers, ErrorSums* sums, const MakeRun& make_run) {
  // As many tasks as other operations have, with at most four parts each.
  const size_t most = static_cast<size_t>(ThreadsOf(workers)) * TaskSplit::kTasksPerThread;
  const size_t per_task = std::clamp<size_t>(parts / most, 1, 4);
  const size_t tasks = (parts + per_task - 1) / per_task;
  std::vector<ErrorSums> sums_of(sums == nullptr ? 0 : parts);
  std::vector<absl::Status> statuses(tasks);
  ForEachTask(workers, tasks, [&](size_t task) {
    auto run = make_run();
    const size_t end = std::min(parts, (task + 1) * per_task);
    for (size_t part = task * per_task; part < end && statuses[task].ok(); ++part) {
      statuses[task] = run(part, sums == nullptr ? nullptr : &sums_of[part]);
    }
  });
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  for (const ErrorSums& part : sums_of) sums->Add(part);
  return absl::OkStatus();
}

}  // namespace quantd

#endif  // QUANTD_SRC_POOL_PARTS_H_
