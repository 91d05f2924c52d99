#include "kernels/find_kernel.h"

namespace quantd {

Division DivisionOf(Quotient quotient, ZeroPointOrder order) {
  if (order == ZeroPointOrder::kBeforeRounding) return Division::kDivideAndAdd;
  switch (quotient) {
    case Quotient::kReciprocal:
      return Division::kReciprocal;
    case Quotient::kGivenFloat16:
      return Division::kDivideFloat16;
    case Quotient::kGivenBfloat16:
      return Division::kDivideBfloat16;
    default:
      return Division::kDivide;
  }
}

Decoder DecoderOf(DataType input) {
  for (size_t d = 0; d < kDecoders; ++d) {
    if (TypeOf(static_cast<Decoder>(d)) == input) return static_cast<Decoder>(d);
  }
  return Info(input).minimum < 0 ? Decoder::kInt8 : Decoder::kUint8;  // 4 and 2 bits
}

Encoder EncoderOf(DataType output) {
  for (size_t e = 0; e < kEncoders; ++e) {
    if (TypeOf(static_cast<Encoder>(e)) == output) return static_cast<Encoder>(e);
  }
  return Info(output).bits == 16 ? Encoder::kInteger16 : Encoder::kInteger8;
}

QuantizeKernel FindQuantize(const KernelTable& table, Quotient quotient, ZeroPointOrder order,
                            DataType output, ScaleMode mode) {
  return table.quantize[static_cast<size_t>(DivisionOf(quotient, order))]
                       [static_cast<size_t>(EncoderOf(output))][static_cast<size_t>(mode)];
}

DequantizeKernel FindDequantize(const KernelTable& table, DataType input, ScaleMode mode) {
  return table.dequantize[static_cast<size_t>(DecoderOf(input))][static_cast<size_t>(mode)];
}

}  // namespace quantd
