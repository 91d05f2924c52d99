// Runs a fuzzer's function without libFuzzer, on generated inputs: the short run that every build
// with any compiler can do.
//
//   request_fuzz_test [number of inputs [folder]]
//
// QUANTD_TEST_SEED=... repeats a run, or one input of it.
//
// The inputs in corpus/, which long runs have found, come first. With a folder it also writes the
// generated inputs there: a corpus for libFuzzer to start from.
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzzing.h"

namespace {

uint64_t running = 0;  // the seed of the input

void SayWhich(int) { std::fprintf(stderr, "at QUANTD_TEST_SEED=%" PRIu64 "\n", running); }

void Run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

uint64_t RunCorpus() {
  if (!std::filesystem::is_directory(QUANTD_FUZZ_CORPUS)) return 0;
  uint64_t done = 0;
  for (const auto& file : std::filesystem::directory_iterator(QUANTD_FUZZ_CORPUS)) {
    std::ifstream bytes(file.path(), std::ios::binary);
    Run({std::istreambuf_iterator<char>(bytes), {}});
    ++done;
  }
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  using quantd::fuzz::useful_inputs;
  const uint64_t inputs = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 50'000;
  const uint64_t seed = quantd::wire::TestSeed(20261121);
  std::signal(SIGABRT, SayWhich);
  const uint64_t known = RunCorpus();
  useful_inputs = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  uint64_t done = 0;
  for (; done < inputs && std::chrono::steady_clock::now() < end; ++done) {
    running = seed + done;
    quantd::fuzz::Random random(running);
    const std::string input = quantd::fuzz::RandomInput(random);
    if (argc > 2) std::ofstream(std::string(argv[2]) + "/" + std::to_string(running)) << input;
    Run(input);
  }
  std::printf("%" PRIu64 " inputs of the corpus; %" PRIu64 " inputs, %" PRIu64
              " of them answered\n",
              known, done, useful_inputs);
  // If all inputs are refused, nothing is tested.
  return useful_inputs > done / 4 ? 0 : 1;
}
