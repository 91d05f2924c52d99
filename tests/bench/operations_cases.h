// What operations_bench measures at 1 MiB of FLOAT: every pair of types that an operation plans,
// and every granularity for a few of them.
#ifndef QUANTD_TESTS_BENCH_OPERATIONS_CASES_H_
#define QUANTD_TESTS_BENCH_OPERATIONS_CASES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "quantd/executor.h"

namespace quantd::bench {

struct Case {
  std::string operation;
  std::string input;
  std::string output;
  std::string variant;  // "per tensor", "blocks of 32", ...
  int64_t elements = 0;
  int base = -1;  // the case that this one is a variant of, in the list; -1: none
  // A plan and its execution, as the server does them for a request.
  std::function<absl::Status(const Executor&)> run;
};

// Pairs first, then granularities and options.
std::vector<Case> AllCases();

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_OPERATIONS_CASES_H_
