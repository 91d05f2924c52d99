// Runs a fuzzer's function without libFuzzer, on generated inputs: the short run that every build
// and every compiler can do.
//
//   request_fuzz_test [number of inputs [folder]]      QUANTD_TEST_SEED=... repeats a run
//
// With a folder it writes the inputs there as well: a corpus for libFuzzer to start from.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "fuzzing.h"

int main(int argc, char** argv) {
  using quantd::fuzz::useful_inputs;
  const uint64_t inputs = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 50'000;
  const uint64_t seed = quantd::wire::TestSeed(20261121);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  uint64_t done = 0;
  for (; done < inputs && std::chrono::steady_clock::now() < end; ++done) {
    quantd::fuzz::Random random(seed + done);
    const std::string input = quantd::fuzz::RandomInput(random);
    if (argc > 2) std::ofstream(std::string(argv[2]) + "/" + std::to_string(seed + done)) << input;
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  }
  std::printf("%llu inputs, %llu of them answered\n", static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(useful_inputs));
  // Inputs that are all refused would test nothing.
  return useful_inputs > done / 4 ? 0 : 1;
}
