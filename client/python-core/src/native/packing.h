// Types narrower than a byte: numpy uses one byte per element, quantd packs them, lowest bits
// first.
#ifndef QUANTD_PYTHON_CORE_PACKING_H_
#define QUANTD_PYTHON_CORE_PACKING_H_

#include <cstdint>

#include "quantd/data_type.h"
#include "quantd/executor.h"

namespace quantd::python {

inline bool IsPacked(DataType type) { return Info(type).bits < 8; }

// `elements` bytes -> ByteSize(type, elements) bytes. Only the type's low bits of each byte count.
// REQUIRES: IsPacked(type).
void Pack(DataType type, const uint8_t* codes, int64_t elements, const Executor& executor,
          uint8_t* packed);

// The reverse; codes of signed types are sign-extended, as in ml_dtypes.
void Unpack(DataType type, const uint8_t* packed, int64_t elements, const Executor& executor,
            uint8_t* codes);

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_PACKING_H_
