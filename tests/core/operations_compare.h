// Computes a random request of one of the three operations on every target, and compares it with
// the oracle, bit for bit. Differences are failures of the calling test.
#ifndef QUANTD_TESTS_CORE_OPERATIONS_COMPARE_H_
#define QUANTD_TESTS_CORE_OPERATIONS_COMPARE_H_

#include "operations_random.h"
#include "quantd/parameters.h"
#include "quantd/shape.h"

namespace quantd {

inline bool Never() { return false; }

// With an x of that shape, and random types and switches. Returns whether the request is valid.
using Operation = bool (*)(Random& random, const Shape& shape, const RandomBlocks& blocks);
bool TryQuantize(Random& random, const Shape& shape, const RandomBlocks& blocks);
bool TryDequantize(Random& random, const Shape& shape, const RandomBlocks& blocks);
bool TryDynamicQuantize(Random& random, const Shape& shape, const RandomBlocks& blocks);

// For this request, with bytes of x in random pieces. Returns whether it is valid.
bool IsTheReference(Random& random, const DynamicQuantizeParameters& parameters,
                    const OwnedTensor& x);

}  // namespace quantd

#endif  // QUANTD_TESTS_CORE_OPERATIONS_COMPARE_H_
