// What the fuzzers share. Each defines LLVMFuzzerTestOneInput and, for the run without libFuzzer
// (run_generated.cc), the two symbols declared first here.
#ifndef QUANTD_TESTS_FUZZ_FUZZING_H_
#define QUANTD_TESTS_FUZZ_FUZZING_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "wire_testing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace quantd::fuzz {

using wire::Below;
using wire::OneIn;
using wire::Random;

// An input that mostly makes sense.
std::string RandomInput(Random& random);
// How many inputs were processed to the end (a response, a file that was read), not refused.
extern uint64_t useful_inputs;

inline void Require(bool condition, absl::string_view what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace quantd::fuzz

#endif  // QUANTD_TESTS_FUZZ_FUZZING_H_
