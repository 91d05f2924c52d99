// Counts every operator new of the program that links it; link it into a program of its own.
#ifndef QUANTD_TESTS_SERVER_WIRE_COUNTED_MEMORY_H_
#define QUANTD_TESTS_SERVER_WIRE_COUNTED_MEMORY_H_

#include <cstddef>

namespace quantd::wire {

struct MemoryUsed {
  size_t peak_bytes = 0;  // with malloc's rounding and its header of each block
  size_t allocations = 0;
};

// Since the last StartCounting, beyond what existed then.
void StartCounting();
MemoryUsed Counted();

template <typename Work>
MemoryUsed Measure(Work work) {
  StartCounting();
  work();
  return Counted();
}

}  // namespace quantd::wire

#endif  // QUANTD_TESTS_SERVER_WIRE_COUNTED_MEMORY_H_
