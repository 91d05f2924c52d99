// The kernels that are measured: every row of kernels.inc, with one scale and with many.
#ifndef QUANTD_TESTS_BENCH_KERNELS_CASES_H_
#define QUANTD_TESTS_BENCH_KERNELS_CASES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "limit.h"

namespace quantd::bench {

struct Kernel {
  std::string name;
  Limit limit;  // what it is compared with
  // Works on `size` elements.
  std::function<void(const uint8_t* x, size_t size, uint8_t* y, bool stream)> run;
};

// In the order of the report; the first is FLOAT to UINT8 with one scale.
std::vector<Kernel> AllKernels();

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_KERNELS_CASES_H_
