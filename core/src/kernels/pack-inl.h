// Operations that Highway 1.0.3 lacks, or performs too slowly, with raw intrinsics. Apart from this
// file only flush_denormals.h uses intrinsics. Included once per target (hence no include guard).
//
// Vocabulary: V is one vector of N floats, I of N int32; a block is four of them, 4 N elements,
// whose one-byte codes fill one vector.
#if defined(QUANTD_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUANTD_PACK_INL_H_
#undef QUANTD_PACK_INL_H_
#else
#define QUANTD_PACK_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;
using DI16 = hn::Repartition<int16_t, DF>;
using DU16 = hn::Repartition<uint16_t, DF>;
using DU8 = hn::Repartition<uint8_t, DF>;
using DI8 = hn::Repartition<int8_t, DF>;
using V = hn::Vec<DF>;
using I = hn::Vec<DI>;
using U = hn::Vec<DU>;
using I16 = hn::Vec<DI16>;
using U8 = hn::Vec<DU8>;
using I8 = hn::Vec<DI8>;

inline constexpr size_t N = HWY_LANES(float);

// ---- Clamping -----------------------------------------------------------------------------------
// Highway's Min and Max treat NaN differently on each target. These behave like min and max of x86,
// which return their second operand if one is NaN.

#if HWY_ARCH_X86

#if HWY_TARGET == HWY_AVX2
#define QUANTD_X86(name) _mm256_##name
#else
#define QUANTD_X86(name) _mm512_##name
#endif

// low <= v <= high; a NaN v becomes low.
HWY_INLINE V ClampNanLow(V v, V low, V high) {
  return V{QUANTD_X86(min_ps)(QUANTD_X86(max_ps)(v.raw, low.raw), high.raw)};
}
// Minimum (maximum) of v and `found`; a NaN in v is skipped.
HWY_INLINE V MinSkipNan(V v, V found) { return V{QUANTD_X86(min_ps)(v.raw, found.raw)}; }
HWY_INLINE V MaxSkipNan(V v, V found) { return V{QUANTD_X86(max_ps)(v.raw, found.raw)}; }

// Rounds half to even, in the default rounding mode. Values outside of int32, on either side, and
// NaN become the lowest int32 on x86 (kOverflowIsLowest). Highway's NearestInt spends another 30 to
// 47 % on values out of range, which a clamp has excluded here.
HWY_INLINE I RoundToInt(V v) { return I{QUANTD_X86(cvtps_epi32)(v.raw)}; }
// Like RoundToInt, but rounds towards zero.
HWY_INLINE I TruncateToInt(V v) { return I{QUANTD_X86(cvttps_epi32)(v.raw)}; }
inline constexpr bool kOverflowIsLowest = true;

#else  // NEON

HWY_INLINE V ClampNanLow(V v, V low, V high) {
  return V{vminq_f32(vmaxnmq_f32(v.raw, low.raw), high.raw)};
}
HWY_INLINE V MinSkipNan(V v, V found) { return V{vminnmq_f32(v.raw, found.raw)}; }
HWY_INLINE V MaxSkipNan(V v, V found) { return V{vmaxnmq_f32(v.raw, found.raw)}; }
HWY_INLINE I RoundToInt(V v) { return I{vcvtnq_s32_f32(v.raw)}; }
HWY_INLINE I TruncateToInt(V v) { return I{vcvtq_s32_f32(v.raw)}; }
inline constexpr bool kOverflowIsLowest = false;  // NaN becomes 0, and +Inf the largest

#endif

// Detects NaN in pairs of vectors with one comparison per pair.
struct NanWatch {
#if HWY_TARGET == HWY_AVX3
  __mmask16 none = 0xFFFF;  // lanes without a NaN so far
  HWY_INLINE void Add(V a, V b) { none &= _mm512_cmp_ps_mask(a.raw, b.raw, _CMP_ORD_Q); }
  HWY_INLINE void Join(const NanWatch& other) { none &= other.none; }
  HWY_INLINE bool Any() const { return none != 0xFFFF; }
#elif HWY_TARGET == HWY_AVX2
  __m256 some;
  HWY_INLINE NanWatch() { some = _mm256_setzero_ps(); }
  HWY_INLINE void Add(V a, V b) {
    some = _mm256_or_ps(some, _mm256_cmp_ps(a.raw, b.raw, _CMP_UNORD_Q));
  }
  HWY_INLINE void Join(const NanWatch& other) { some = _mm256_or_ps(some, other.some); }
  HWY_INLINE bool Any() const { return _mm256_movemask_ps(some) != 0; }
#else
  uint32x4_t none;
  HWY_INLINE NanWatch() { none = vdupq_n_u32(~0u); }
  HWY_INLINE void Add(V a, V b) {
    none = vandq_u32(none, vandq_u32(vceqq_f32(a.raw, a.raw), vceqq_f32(b.raw, b.raw)));
  }
  HWY_INLINE void Join(const NanWatch& other) { none = vandq_u32(none, other.none); }
  HWY_INLINE bool Any() const { return vminvq_u32(none) == 0; }
#endif
};

// ---- Narrowing ----------------------------------------------------------------------------------
// On x86 packing works within 128-bit lanes: two int32 vectors become one int16 vector in "pack
// order", and PackBytes finally puts the bytes of four vectors in order.

#if HWY_ARCH_X86
// Two int16 vectors, saturated to [0, 255], in pack order.
HWY_INLINE U8 NarrowBytes(I16 a, I16 b) { return U8{QUANTD_X86(packus_epi16)(a.raw, b.raw)}; }
// Like NarrowBytes, but saturated to [-128, 127].
HWY_INLINE I8 NarrowSigned(I16 a, I16 b) { return I8{QUANTD_X86(packs_epi16)(a.raw, b.raw)}; }
#else
HWY_INLINE U8 NarrowBytes(I16 a, I16 b) {
  return U8{vcombine_u8(vqmovun_s16(a.raw), vqmovun_s16(b.raw))};
}
HWY_INLINE I8 NarrowSigned(I16 a, I16 b) {
  return I8{vcombine_s8(vqmovn_s16(a.raw), vqmovn_s16(b.raw))};
}
#endif

#if HWY_TARGET == HWY_AVX3

// Two int32 vectors, saturated to int16, in pack order.
HWY_INLINE I16 PackInt16(I a, I b) { return I16{_mm512_packs_epi32(a.raw, b.raw)}; }
// Reorders the bytes of four vectors, of which each 128-bit lane has four of each.
HWY_INLINE U8 OrderBytes(U8 bytes) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return U8{_mm512_permutexvar_epi32(order, bytes.raw)};
}
// Like PackBytes, for two int16 vectors in order.
HWY_INLINE U8 PackOrderedBytes(I16 a, I16 b) {
  const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  return U8{_mm512_permutexvar_epi64(order, NarrowBytes(a, b).raw)};
}
// The low 16 bits of each lane of two vectors, in order.
HWY_INLINE hn::Vec<DU16> PackLow16(U a, U b) {
  const __m512i even =
      _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 26,
                       24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  return hn::Vec<DU16>{_mm512_permutex2var_epi16(a.raw, even, b.raw)};
}

#elif HWY_TARGET == HWY_AVX2

HWY_INLINE I16 PackInt16(I a, I b) { return I16{_mm256_packs_epi32(a.raw, b.raw)}; }
HWY_INLINE U8 OrderBytes(U8 bytes) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return U8{_mm256_permutevar8x32_epi32(bytes.raw, order)};
}
HWY_INLINE U8 PackOrderedBytes(I16 a, I16 b) {
  return U8{_mm256_permute4x64_epi64(NarrowBytes(a, b).raw, 0xD8)};
}
HWY_INLINE hn::Vec<DU16> PackLow16(U a, U b) {
  const __m256i mask = _mm256_set1_epi32(0xFFFF);
  const __m256i packed =
      _mm256_packus_epi32(_mm256_and_si256(a.raw, mask), _mm256_and_si256(b.raw, mask));
  return hn::Vec<DU16>{_mm256_permute4x64_epi64(packed, 0xD8)};
}

#else  // NEON: in order throughout

HWY_INLINE I16 PackInt16(I a, I b) {
  return I16{vcombine_s16(vqmovn_s32(a.raw), vqmovn_s32(b.raw))};
}
HWY_INLINE U8 OrderBytes(U8 bytes) { return bytes; }
HWY_INLINE U8 PackOrderedBytes(I16 a, I16 b) { return NarrowBytes(a, b); }
HWY_INLINE hn::Vec<DU16> PackLow16(U a, U b) {
  return hn::Vec<DU16>{vuzp1q_u16(vreinterpretq_u16_u32(a.raw), vreinterpretq_u16_u32(b.raw))};
}

#endif

// Two int16 vectors in pack order, saturated to [0, 255] and put in order.
HWY_INLINE U8 PackBytes(I16 ab, I16 cd) { return OrderBytes(NarrowBytes(ab, cd)); }
// The bytes of two int16 vectors in pack order, each with one vector's numbers in even lanes and
// the next one's in odd lanes, put in order.
HWY_INLINE U8 OrderPairedBytes(U8 bytes) {
  alignas(16) static constexpr uint8_t kApart[16] = {0, 2,  4,  6,  1, 3,  5,  7,
                                                     8, 10, 12, 14, 9, 11, 13, 15};
  const DU8 du8;
  return OrderBytes(hn::TableLookupBytes(bytes, hn::LoadDup128(du8, kApart)));
}

// Combines neighbours into one number, for packing: kWeight is the weight of the second (odd) one.
#if HWY_ARCH_X86
template <int kWeight>
HWY_INLINE I16 PairSum(U8 codes) {
  return I16{QUANTD_X86(maddubs_epi16)(codes.raw, QUANTD_X86(set1_epi16)(kWeight << 8 | 1))};
}
#else
template <int kWeight>
HWY_INLINE I16 PairSum(U8 codes) {
  const auto even = vandq_u16(vreinterpretq_u16_u8(codes.raw), vdupq_n_u16(0xFF));
  const auto odd = vshrq_n_u16(vreinterpretq_u16_u8(codes.raw), 8);
  return I16{vreinterpretq_s16_u16(vmlaq_n_u16(even, odd, kWeight))};
}
#endif

// One bit per value of a block: whether it is > 0, or with kOrEqual >= 0; neither for NaN. The
// first of eight values is the lowest bit of its byte, or with !kLsbFirst the highest.
#if HWY_ARCH_X86
using Bits = std::conditional_t<(N > 8), uint64_t, uint32_t>;

template <bool kLsbFirst>
HWY_INLINE U8 OrderBits(U8 bytes) {
  if constexpr (kLsbFirst) return bytes;
  const __m128i reverse = _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
#if HWY_TARGET == HWY_AVX3
  return U8{_mm512_shuffle_epi8(bytes.raw, _mm512_broadcast_i32x4(reverse))};
#else
  return U8{_mm256_shuffle_epi8(bytes.raw, _mm256_broadcastsi128_si256(reverse))};
#endif
}

template <bool kLsbFirst, bool kOrEqual>
HWY_INLINE Bits SignBits(V a, V b, V c, V d) {
  constexpr int kCompare = kOrEqual ? _CMP_GE_OQ : _CMP_GT_OQ;
#if HWY_TARGET == HWY_AVX3
  const __m512 zero = _mm512_setzero_ps();
  const auto mask = [zero](V v) HWY_ATTR {
    return static_cast<uint64_t>(_mm512_cmp_ps_mask(v.raw, zero, kCompare));
  };
  const uint64_t bits = mask(a) | mask(b) << 16 | mask(c) << 32 | mask(d) << 48;
  if constexpr (kLsbFirst) return bits;
  return _mm512_movepi8_mask(OrderBits<false>(U8{_mm512_movm_epi8(bits)}).raw);
#else
  const __m256 zero = _mm256_setzero_ps();
  const auto mask = [zero](V v) HWY_ATTR {
    return _mm256_castps_si256(_mm256_cmp_ps(v.raw, zero, kCompare));
  };
  const __m256i words = _mm256_packs_epi16(_mm256_packs_epi32(mask(a), mask(b)),
                                           _mm256_packs_epi32(mask(c), mask(d)));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const U8 bytes{_mm256_permutevar8x32_epi32(words, order)};
  return static_cast<uint32_t>(_mm256_movemask_epi8(OrderBits<kLsbFirst>(bytes).raw));
#endif
}
#else
using Bits = uint16_t;

template <bool kLsbFirst, bool kOrEqual>
HWY_INLINE Bits SignBits(V a, V b, V c, V d) {
  const float32x4_t zero = vdupq_n_f32(0);
  const auto mask = [zero](V v) HWY_ATTR {
    return vmovn_u32(kOrEqual ? vcgeq_f32(v.raw, zero) : vcgtq_f32(v.raw, zero));
  };
  const uint8x16_t bytes = vcombine_u8(vmovn_u16(vcombine_u16(mask(a), mask(b))),
                                       vmovn_u16(vcombine_u16(mask(c), mask(d))));
  alignas(16) static constexpr uint8_t kLsb[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                   1, 2, 4, 8, 16, 32, 64, 128};
  alignas(16) static constexpr uint8_t kMsb[16] = {128, 64, 32, 16, 8, 4, 2, 1,
                                                   128, 64, 32, 16, 8, 4, 2, 1};
  const uint8x16_t weighted = vandq_u8(bytes, vld1q_u8(kLsbFirst ? kLsb : kMsb));
  const uint8x16_t two = vpaddq_u8(weighted, weighted);
  const uint8x16_t four = vpaddq_u8(two, two);
  return vgetq_lane_u16(vreinterpretq_u16_u8(vpaddq_u8(four, four)), 0);
}
#endif

// Adds 1 to negative numbers.
HWY_INLINE I8 RaiseNegative(I8 v) {
#if HWY_TARGET == HWY_AVX3
  const __m512i one = _mm512_set1_epi8(1);
  return I8{_mm512_mask_add_epi8(v.raw, _mm512_movepi8_mask(v.raw), v.raw, one)};
#else
  const DI8 d;
  return hn::Sub(v, hn::VecFromMask(d, hn::Lt(v, hn::Zero(d))));
#endif
}

// Whether a lane is the lowest int16.
HWY_INLINE bool AnyLowest(I16 a, I16 b) {
#if HWY_TARGET == HWY_AVX3
  const __m512i lowest = _mm512_set1_epi16(INT16_MIN);
  return _mm512_cmpeq_epi16_mask(_mm512_min_epi16(a.raw, b.raw), lowest) != 0;
#else
  const DI16 d;
  return !hn::AllFalse(d, hn::Eq(hn::Min(a, b), hn::Set(d, INT16_MIN)));
#endif
}

// ---- Memory -------------------------------------------------------------------------------------
// Elements may have any address, so all are accessed through byte pointers.

template <typename T>
HWY_INLINE const T* As(const uint8_t* bytes) {
  return reinterpret_cast<const T*>(bytes);
}
template <typename T>
HWY_INLINE T* As(uint8_t* bytes) {
  return reinterpret_cast<T*>(bytes);
}

// `stream`: bypass the caches; `out` must be aligned.
template <class D>
HWY_INLINE void Put(hn::Vec<D> v, D d, bool stream, hn::TFromD<D>* out) {
  if (stream) {
    hn::Stream(v, d, out);
  } else {
    hn::StoreU(v, d, out);
  }
}

// Keeps a loaded value in its register. Compilers would load it again for each use, and loads are
// the bottleneck.
HWY_INLINE V InRegister(V v) {
#if HWY_ARCH_X86
  __asm__("" : "+v"(v.raw));
#else
  __asm__("" : "+w"(v.raw));
#endif
  return v;
}

// Prefetches `kBytes` of input, 4 KiB ahead, into the second-level cache: 14 % faster at 256 MiB. A
// call of 16 MiB, whose input has just been received, takes 15 % less CPU and time. Has no effect
// past the end of the input.
template <size_t kBytes>
HWY_INLINE void FetchAhead(const uint8_t* x) {
#pragma GCC unroll 4
  for (size_t line = 0; line < kBytes; line += 64) __builtin_prefetch(x + 4096 + line, 0, 2);
}

// Prefetches 2 KiB ahead into the first-level cache, for loops that only read: 8 % faster when the
// input is in the third-level cache.
template <size_t kBytes>
HWY_INLINE void FetchNear(const uint8_t* x) {
#pragma GCC unroll 4
  for (size_t line = 0; line < kBytes; line += 64) __builtin_prefetch(x + 2048 + line, 0, 3);
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();

#endif  // QUANTD_PACK_INL_H_
