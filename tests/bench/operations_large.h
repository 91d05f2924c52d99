// The three operations on tensors of a MiB and more, beside what bounds them.
#ifndef QUANTD_TESTS_BENCH_OPERATIONS_LARGE_H_
#define QUANTD_TESTS_BENCH_OPERATIONS_LARGE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "quantd/executor.h"

namespace quantd::bench {

struct LargeCase {
  std::string operation;
  std::string limit_name;
  std::function<absl::Status(const Executor&)> run;
  // Each is run in every way, and its fastest counts; the limit is one after the other.
  std::vector<std::function<void(const Executor&, int tasks, bool stream)>> limits;
};

// FLOAT and UINT8, one scale. The cases share one tensor of `bytes` of FLOAT, which is there as
// long as they are.
std::vector<LargeCase> LargeCases(size_t bytes);

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_OPERATIONS_LARGE_H_
