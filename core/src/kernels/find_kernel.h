// Selects the function of a table by the types and the arithmetic of an operation.
//
//   QuantizeKernel quantize = FindQuantize(kernels, Quotient::kDivide,
//                                          ZeroPointOrder::kAfterRounding, DataType::kUint8,
//                                          ScaleMode::kRuns);
//   if (ConvertTile convert = ToFloat(kernels, DataType::kFloat16)) ...
#ifndef QUANTD_SRC_KERNELS_FIND_KERNEL_H_
#define QUANTD_SRC_KERNELS_FIND_KERNEL_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"
#include "quantd/arithmetic.h"
#include "quantd/data_type.h"

namespace quantd {

// Never null for combinations that PlanQuantize makes.
QuantizeKernel FindQuantize(const KernelTable& table, Quotient quotient, ZeroPointOrder order,
                            DataType output, ScaleMode mode);
// Selects by the type of x.
DequantizeKernel FindDequantize(const KernelTable& table, DataType input, ScaleMode mode);
inline RangeKernel FindRange(const KernelTable& table, NonFinite non_finite, ScaleMode mode) {
  return table.range[non_finite == NonFinite::kIgnore][static_cast<size_t>(mode)];
}

// The parts by which FindQuantize selects a kernel; for ErrorTile.
Division DivisionOf(Quotient quotient, ZeroPointOrder order);
Encoder EncoderOf(DataType output);  // REQUIRES: an output type of Quantize
Decoder DecoderOf(DataType input);   // REQUIRES: an input type of Dequantize

// ---- Loading and storing the elements of tiles --------------------------------------------------

// Converts `size` elements from one form to another; null if the forms are the same.
using ConvertTile = void (*)(const uint8_t* from, size_t size, uint8_t* to);

inline ConvertTile ToFloat(const KernelTable& kernels, DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return kernels.float16_to_float;
    case DataType::kBfloat16:
      return kernels.bfloat16_to_float;
    case DataType::kInt32:
      return kernels.int32_to_float;
    default:
      return nullptr;
  }
}

inline ConvertTile FromFloat(const KernelTable& kernels, DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return kernels.float_to_float16;
    case DataType::kBfloat16:
      return kernels.float_to_bfloat16;
    default:
      return nullptr;
  }
}

// Packs codes of one byte each.
inline ConvertTile Pack(const KernelTable& kernels, int bits) {
  switch (bits) {
    case 6:
      return kernels.pack6;
    case 4:
      return kernels.pack4;
    case 2:
      return kernels.pack2;
    default:
      return nullptr;
  }
}

// Unpacks to codes of one byte each.
inline ConvertTile Unpack(const KernelTable& kernels, DataType type) {
  const DataTypeInfo& info = Info(type);
  switch (info.bits) {
    case 6:
      return kernels.unpack6;
    case 4:
      return info.minimum < 0 ? kernels.unpack_int4 : kernels.unpack_uint4;
    case 2:
      return info.minimum < 0 ? kernels.unpack_int2 : kernels.unpack_uint2;
    default:
      return nullptr;
  }
}

}  // namespace quantd

#endif  // QUANTD_SRC_KERNELS_FIND_KERNEL_H_
