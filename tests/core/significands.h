// Tries the significands of a scale: all of them, or a sample.
#ifndef QUANTD_TESTS_CORE_SIGNIFICANDS_H_
#define QUANTD_TESTS_CORE_SIGNIFICANDS_H_

#include <thread>

#include "kernels_test_util.h"

namespace quantd {

// Whether the program was started with --exhaustive (significands.cc has main).
extern bool exhaustive;

// Expects that count(table, begin, step, power 1, example) finds no difference on any table. With
// `exhaustive`: for every significand, on all cores; else for each 1,021st, from a random one on.
template <typename Count>
void ExpectNoDifferences(const char* what, Count count) {
  for (const KernelTable* table : TablesUnderTest()) {
    const uint32_t step = exhaustive ? 1 : 1021;
    const uint32_t start = exhaustive ? 0 : std::random_device()() % step;
    std::printf("%s: significands from %u in steps of %u\n", table->name, start, step);
    const size_t threads = exhaustive ? std::max(1u, std::thread::hardware_concurrency()) : 1;
    std::vector<uint64_t> differences(threads);
    std::vector<float> examples(threads);
    std::vector<std::thread> workers;
    for (size_t t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        differences[t] = count(*table, start + static_cast<uint32_t>(t) * step,
                               static_cast<uint32_t>(threads) * step, 1.0f, &examples[t]);
      });
    }
    for (std::thread& worker : workers) worker.join();
    for (size_t t = 0; t < threads; ++t) {
      EXPECT_EQ(differences[t], 0u)
          << table->name << " " << what << " " << std::hexfloat << examples[t];
    }
  }
}

}  // namespace quantd

#endif  // QUANTD_TESTS_CORE_SIGNIFICANDS_H_
