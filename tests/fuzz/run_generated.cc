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

#include "message_generator.h"
#include "request_generator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace quantd {
extern uint64_t served_requests;
}

namespace quantd::wire {
namespace {

std::string RandomInput(Random& random) {
  const uint64_t kind = Below(random, 4);
  std::string message;
  if (OneIn(random, 8)) {
    const google::protobuf::Descriptor* const types[] = {
        v1::QuantizeRequest::descriptor(), v1::DequantizeRequest::descriptor(),
        v1::DynamicQuantizeRequest::descriptor(), v1::StreamRequest::descriptor()};
    message = RandomMessage(*types[kind], random);
  } else if (kind < kOperations) {
    message = RandomRequest(kMethods[kind].method, random);
  } else {
    do {  // of two operations in one item the last counts
      const Method method = kMethods[Below(random, kOperations)].method;
      message += MakeItem(random(), method, RandomRequest(method, random)).SerializeAsString();
    } while (OneIn(random, 4));
  }
  if (OneIn(random, 4)) message = Mutate(std::move(message), random);
  return static_cast<char>(kind + 4 * Below(random, 64)) + message;
}

}  // namespace
}  // namespace quantd::wire

int main(int argc, char** argv) {
  using namespace quantd::wire;
  const uint64_t inputs = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 50'000;
  const uint64_t seed = TestSeed(20261121);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  uint64_t done = 0;
  for (; done < inputs && std::chrono::steady_clock::now() < end; ++done) {
    Random random(seed + done);
    const std::string input = RandomInput(random);
    if (argc > 2) std::ofstream(std::string(argv[2]) + "/" + std::to_string(seed + done)) << input;
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  }
  std::printf("%llu inputs, %llu of them answered\n", static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(quantd::served_requests));
  // Inputs that are all refused would test nothing.
  return quantd::served_requests > done / 4 ? 0 : 1;
}
