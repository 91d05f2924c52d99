// What the tests of the C interface share.
#ifndef QUANTD_TESTS_CORE_C_C_TESTING_H_
#define QUANTD_TESTS_CORE_C_C_TESTING_H_

#include "operations_random.h"
#include "quantd/core.h"
#include "quantd/executor.h"

namespace quantd {

inline bool Never() { return false; }

inline const Executor& One() {
  static const auto* const executor = new Executor(1);
  return *executor;
}

inline quantd_tensor TensorOf(const OwnedTensor& tensor) {
  return {static_cast<int32_t>(tensor.type), static_cast<int32_t>(tensor.shape.size()),
          tensor.shape.data(), tensor.bytes.data(), tensor.bytes.size()};
}

}  // namespace quantd

#endif  // QUANTD_TESTS_CORE_C_C_TESTING_H_
