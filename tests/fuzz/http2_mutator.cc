// libFuzzer's mutations for inputs of HTTP/2: frames stay frames, so that a run gets beyond their
// heads. One in eight changes plain bytes, so that heads may lie.
#include <cstddef>
#include <cstdint>
#include <string>

#include "http2_input.h"

// Names that libFuzzer prescribes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed);
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* first, size_t first_size,
                                            const uint8_t* second, size_t second_size, uint8_t* out,
                                            size_t max_out_size, unsigned int seed);

namespace quantd::fuzz {
namespace {

constexpr size_t kMostGrowth = 64;

Conversation Of(const uint8_t* input, size_t size) {
  return ParseConversation(Join({reinterpret_cast<const char*>(input), size}));
}

// Writes it as an input of at most `max_size` bytes; what is longer is cut off.
size_t Store(const Conversation& conversation, Random& random, uint8_t* out, size_t max_size) {
  const std::string input = Cut(ToBytes(conversation), random);
  return input.copy(reinterpret_cast<char*>(out), max_size);
}

void ChangeBytes(std::string& bytes) {
  const size_t size = bytes.size();
  bytes.resize(size + kMostGrowth);
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, bytes.size()));
}

}  // namespace
}  // namespace quantd::fuzz

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  using namespace quantd::fuzz;
  Random random(seed);
  if (OneIn(random, 8)) return LLVMFuzzerMutate(data, size, max_size);
  Conversation conversation = Of(data, size);
  // Sometimes the same frames, cut differently.
  if (!OneIn(random, 16)) Change(conversation, random, ChangeBytes);
  return Store(conversation, random, data, max_size);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t* first, size_t first_size, const uint8_t* second,
                                 size_t second_size, uint8_t* out, size_t max_out_size,
                                 unsigned int seed) {
  using namespace quantd::fuzz;
  Random random(seed);
  return Store(Cross(Of(first, first_size), Of(second, second_size), random), random, out,
               max_out_size);
}
