// Counts every operator new of the program that links it, which is a program of its own therefore.
#ifndef QUANTD_TESTS_SERVER_WIRE_COUNTED_MEMORY_H_
#define QUANTD_TESTS_SERVER_WIRE_COUNTED_MEMORY_H_

#include <cstddef>

namespace quantd::wire {

struct MemoryUsed {
  size_t peak_bytes = 0;  // with what malloc rounds up and puts before each block
  size_t allocations = 0;
};

// Since the last StartCounting, beyond what was there then.
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
