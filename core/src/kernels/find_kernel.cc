#include "kernels/find_kernel.h"

namespace quantd {
namespace {

Decoder DecoderOf(DataType input) {
  switch (input) {
    case DataType::kInt8:
    case DataType::kInt4:
    case DataType::kInt2:
      return Decoder::kInt8;
    case DataType::kUint16:
      return Decoder::kUint16;
    case DataType::kInt16:
      return Decoder::kInt16;
    case DataType::kInt32:
      return Decoder::kInt32;
    case DataType::kFloat8E4M3Fn:
      return Decoder::kFloat8E4M3Fn;
    case DataType::kFloat8E4M3Fnuz:
      return Decoder::kFloat8E4M3Fnuz;
    case DataType::kFloat8E5M2:
      return Decoder::kFloat8E5M2;
    case DataType::kFloat8E5M2Fnuz:
      return Decoder::kFloat8E5M2Fnuz;
    case DataType::kFloat4E2M1:
      return Decoder::kFloat4E2M1;
    case DataType::kFloat6E2M3:
      return Decoder::kFloat6E2M3;
    case DataType::kFloat6E3M2:
      return Decoder::kFloat6E3M2;
    default:
      return Decoder::kUint8;
  }
}

}  // namespace

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
