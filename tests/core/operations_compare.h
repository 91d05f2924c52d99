// A random request of one of the three operations, computed on every target and compared with the
// oracle, bit for bit. Differences are failures of the test that calls.
#ifndef QUANTD_TESTS_CORE_OPERATIONS_COMPARE_H_
#define QUANTD_TESTS_CORE_OPERATIONS_COMPARE_H_

#include "operations_random.h"
#include "quantd/parameters.h"
#include "quantd/shape.h"

namespace quantd {

inline bool Never() { return false; }

// Of x of that shape, with random types and switches. Whether it has an answer.
using Operation = bool (*)(Random& random, const Shape& shape, const RandomBlocks& blocks);
bool TryQuantize(Random& random, const Shape& shape, const RandomBlocks& blocks);
bool TryDequantize(Random& random, const Shape& shape, const RandomBlocks& blocks);
bool TryDynamicQuantize(Random& random, const Shape& shape, const RandomBlocks& blocks);

// This one, with bytes of x in random pieces. Whether it has an answer.
bool IsTheReference(Random& random, const DynamicQuantizeParameters& parameters,
                    const OwnedTensor& x);

}  // namespace quantd

#endif  // QUANTD_TESTS_CORE_OPERATIONS_COMPARE_H_
