#include "packing.h"

#include <algorithm>
#include <cstddef>

#include "quantd/shape.h"
#include "quantd/values.h"

namespace quantd::python {
namespace {

// Calls body(first, size) for parts of the elements, each of which begins at a byte.
template <typename Body>
void ForParts(int64_t elements, const Executor& executor, Body body) {
  constexpr int64_t kPart = 512 * 1024;
  const auto parts = static_cast<size_t>((elements + kPart - 1) / kPart);
  executor.ParallelFor(parts, [&](size_t part) {
    const int64_t first = static_cast<int64_t>(part) * kPart;
    body(first, static_cast<size_t>(std::min(kPart, elements - first)));
  });
}

}  // namespace

void Pack(DataType type, const uint8_t* codes, int64_t elements, const Executor& executor,
          uint8_t* packed) {
  ForParts(elements, executor, [=](int64_t first, size_t size) {
    PackCodes(type, codes + first, size, packed + ByteSize(type, first));
  });
}

void Unpack(DataType type, const uint8_t* packed, int64_t elements, const Executor& executor,
            uint8_t* codes) {
  ForParts(elements, executor, [=](int64_t first, size_t size) {
    UnpackCodes(type, packed + ByteSize(type, first), size, codes + first);
  });
}

}  // namespace quantd::python
