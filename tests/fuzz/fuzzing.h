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

// Reads an input from its start; after its end there are zeros.
class Reader {
 public:
  Reader(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  uint8_t Byte() {
    if (at_ >= size_) return 0;
    return data_[at_++];
  }
  // A number in [0, end). REQUIRES: 0 < end <= 256.
  int Below(int end) { return Byte() % end; }
  bool Bit() { return (Byte() & 1) != 0; }
  uint64_t Word() {
    uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word = word << 8 | Byte();
    return word;
  }
  // Mostly small, sometimes any number.
  int64_t Length() {
    const uint8_t byte = Byte();
    if (byte < 250) return byte % 40;
    return byte == 250 ? -1 : static_cast<int64_t>(Word() >> Below(64));
  }
  bool ended() const { return at_ >= size_; }
  absl::string_view Rest() const {
    return {reinterpret_cast<const char*>(data_) + at_, size_ - at_};
  }

 private:
  const uint8_t* const data_;
  const size_t size_;
  size_t at_ = 0;
};

}  // namespace quantd::fuzz

#endif  // QUANTD_TESTS_FUZZ_FUZZING_H_
