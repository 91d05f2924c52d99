// FLOAT8, FLOAT6 and FLOAT4 in numbers, for vector code. (types/small_float.h says the same in its
// own words; the tests compare the two.)
#ifndef QUANTD_SRC_KERNELS_SMALL_FORMAT_H_
#define QUANTD_SRC_KERNELS_SMALL_FORMAT_H_

#include <cstdint>

#include "kernels/kernel_table.h"

namespace quantd {

struct SmallFormat {
  int bits;
  int mantissa_bits;
  int bias;
  uint32_t largest;      // code of the largest finite value
  uint32_t overflow;     // code of what is larger, unless saturated
  uint32_t nan;          // code of a positive NaN
  bool signed_specials;  // whether 0 and NaN have a sign (not in FNUZ, where -0's code is NaN)
  bool no_nan;           // FLOAT6, FLOAT4: always saturates, NaN is coded as 0 of the other sign
};

inline constexpr SmallFormat kE4M3Fn = {8, 3, 7, 0x7E, 0x7F, 0x7F, true, false};
inline constexpr SmallFormat kE4M3Fnuz = {8, 3, 8, 0x7F, 0x80, 0x80, false, false};
inline constexpr SmallFormat kE5M2 = {8, 2, 15, 0x7B, 0x7C, 0x7E, true, false};
inline constexpr SmallFormat kE5M2Fnuz = {8, 2, 16, 0x7F, 0x80, 0x80, false, false};
inline constexpr SmallFormat kE2M1 = {4, 1, 1, 0x7, 0x7, 0x8, true, true};
inline constexpr SmallFormat kE2M3 = {6, 3, 1, 0x1F, 0x1F, 0x20, true, true};
inline constexpr SmallFormat kE3M2 = {6, 2, 3, 0x1F, 0x1F, 0x20, true, true};

// Encoder and Decoder name these types alike. REQUIRES: one of them.
template <typename EncoderOrDecoder>
constexpr SmallFormat FormatOf(EncoderOrDecoder type) {
  switch (type) {
    case EncoderOrDecoder::kFloat8E4M3Fn:
      return kE4M3Fn;
    case EncoderOrDecoder::kFloat8E4M3Fnuz:
      return kE4M3Fnuz;
    case EncoderOrDecoder::kFloat8E5M2:
      return kE5M2;
    case EncoderOrDecoder::kFloat8E5M2Fnuz:
      return kE5M2Fnuz;
    case EncoderOrDecoder::kFloat6E2M3:
      return kE2M3;
    case EncoderOrDecoder::kFloat6E3M2:
      return kE3M2;
    default:
      return kE2M1;
  }
}

}  // namespace quantd

#endif  // QUANTD_SRC_KERNELS_SMALL_FORMAT_H_
