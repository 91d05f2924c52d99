// The benchmark's table and its JSON file.
#ifndef QUANTD_TESTS_BENCH_KERNELS_REPORT_H_
#define QUANTD_TESTS_BENCH_KERNELS_REPORT_H_

#include <cstddef>
#include <string>
#include <vector>

namespace quantd::bench {

struct Result {
  std::string name;
  std::string limit;
  size_t bytes = 0;  // of x, were it FLOAT
  int threads = 1;
  double gigabytes_per_second = 0;  // of FLOAT: 4 bytes an element; the median of all rounds
  double ratio = 0;                 // to the limit, the median of the rounds' ratios
};

std::string SizeName(size_t bytes);  // "1 MiB"

// A table for one number of threads: a line a case, a column a size.
void PrintTable(const std::vector<Result>& results, int threads);
// False when the file can't be written.
bool WriteJson(const std::vector<Result>& results, const std::string& target,
               const std::string& path);

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_KERNELS_REPORT_H_
