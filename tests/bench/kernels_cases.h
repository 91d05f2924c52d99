// What the benchmark measures: every row of kernels.inc, and pairs of types that go through a tile.
#ifndef QUANTD_TESTS_BENCH_KERNELS_CASES_H_
#define QUANTD_TESTS_BENCH_KERNELS_CASES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels_limits.h"

namespace quantd::bench {

struct Case {
  std::string name;
  Limit limit;  // what it is measured against
  bool is_limit = false;
  // Only at 1 MiB: the pairs that differ from another case by a conversion.
  bool one_size = false;
  // Works on `size` elements.
  std::function<void(const uint8_t* x, size_t size, uint8_t* y, bool stream)> run;
};

// Element `index` of x: -3 to 3, well mixed.
float Value(size_t index);

// In the order of the report. The limits come first.
std::vector<Case> AllCases();

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_KERNELS_CASES_H_
