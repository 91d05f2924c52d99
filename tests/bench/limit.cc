#include "limit.h"

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "limit.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernels/pack-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

template <bool kStream, class D>
HWY_INLINE void Put(hn::Vec<D> v, D d, uint8_t* y) {
  if constexpr (kStream) {
    hn::Stream(v, d, As<hn::TFromD<D>>(y));
  } else {
    hn::StoreU(v, d, As<hn::TFromD<D>>(y));
  }
}

template <bool kStream>
void Narrow8(const uint8_t* x, size_t size, uint8_t* y) {
  const DI di;
  for (size_t i = 0; i + 4 * N <= size; i += 4 * N) {
    if constexpr (kStream) FetchAhead<16 * N>(x + 4 * i);
    const int32_t* in = As<int32_t>(x) + i;
    const I16 ab = PackInt16(hn::LoadU(di, in), hn::LoadU(di, in + N));
    const I16 cd = PackInt16(hn::LoadU(di, in + 2 * N), hn::LoadU(di, in + 3 * N));
    Put<kStream>(PackBytes(ab, cd), DU8(), y + i);
  }
}

template <bool kStream>
void Narrow16(const uint8_t* x, size_t size, uint8_t* y) {
  const DU du;
  for (size_t i = 0; i + 2 * N <= size; i += 2 * N) {
    if constexpr (kStream) FetchAhead<8 * N>(x + 4 * i);
    const uint32_t* in = As<uint32_t>(x) + i;
    Put<kStream>(PackLow16(hn::LoadU(du, in), hn::LoadU(du, in + N)), DU16(), y + 2 * i);
  }
}

template <typename T, bool kStream>
void Widen(const uint8_t* x, size_t size, uint8_t* y) {
  const hn::Rebind<T, DU> narrow;
  for (size_t i = 0; i + 4 * N <= size; i += 4 * N) {
    if constexpr (kStream) FetchAhead<4 * N * sizeof(T)>(x + i * sizeof(T));
    for (size_t j = i; j < i + 4 * N; j += N) {
      Put<kStream>(hn::PromoteTo(DU(), hn::LoadU(narrow, As<T>(x) + j)), DU(), y + 4 * j);
    }
  }
}

template <bool kStream>
void Copy32(const uint8_t* x, size_t size, uint8_t* y) {
  for (size_t i = 0; i + 4 * N <= size; i += 4 * N) {
    for (size_t j = i; j < i + 4 * N; j += N) {
      Put<kStream>(hn::LoadU(DU(), As<uint32_t>(x) + j), DU(), y + 4 * j);
    }
  }
}

void Read(const uint8_t* x, size_t size, uint8_t* y) {
  const DF df;
  V min0 = hn::Zero(df), min1 = min0, max0 = min0, max1 = min0;
  V min2 = min0, min3 = min0, max2 = min0, max3 = min0;
  for (size_t i = 0; i + 4 * N <= size; i += 4 * N) {
    const float* in = As<float>(x) + i;
    const V a = hn::LoadU(df, in), b = hn::LoadU(df, in + N);
    const V c = hn::LoadU(df, in + 2 * N), d = hn::LoadU(df, in + 3 * N);
    min0 = hn::Min(min0, a), max0 = hn::Max(max0, a);
    min1 = hn::Min(min1, b), max1 = hn::Max(max1, b);
    min2 = hn::Min(min2, c), max2 = hn::Max(max2, c);
    min3 = hn::Min(min3, d), max3 = hn::Max(max3, d);
  }
  const V both = hn::Add(hn::Add(hn::Min(min0, min1), hn::Max(max0, max1)),
                         hn::Add(hn::Min(min2, min3), hn::Max(max2, max3)));
  hn::StoreU(both, df, As<float>(y));
}

template <bool kStream>
void Run(bench::Limit limit, const uint8_t* x, size_t size, uint8_t* y) {
  switch (limit) {
    case bench::Limit::kNarrow8:
      return Narrow8<kStream>(x, size, y);
    case bench::Limit::kNarrow16:
      return Narrow16<kStream>(x, size, y);
    case bench::Limit::kWiden8:
      return Widen<uint8_t, kStream>(x, size, y);
    case bench::Limit::kWiden16:
      return Widen<uint16_t, kStream>(x, size, y);
    case bench::Limit::kCopy32:
      return Copy32<kStream>(x, size, y);
    case bench::Limit::kRead:
      return Read(x, size, y);
  }
}

void RunLimitHere(bench::Limit limit, const uint8_t* x, size_t size, uint8_t* y, bool stream) {
  if (!stream) return Run<false>(limit, x, size, y);
  Run<true>(limit, x, size, y);
  hwy::FlushStream();
}

#else

// The baseline, for a CPU whose vectors Highway does not support.
void RunLimitHere(bench::Limit limit, const uint8_t* x, size_t size, uint8_t* y, bool) {
  const size_t in = limit == bench::Limit::kWiden8 ? 1 : limit == bench::Limit::kWiden16 ? 2 : 4;
  const size_t out = limit == bench::Limit::kNarrow8    ? 1
                     : limit == bench::Limit::kNarrow16 ? 2
                     : limit == bench::Limit::kRead     ? 0
                                                        : 4;
  for (size_t i = 0; i < size; ++i) y[i * out] = static_cast<uint8_t>(y[i * out] + x[i * in]);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quantd {

HWY_EXPORT(RunLimitHere);

namespace bench {

const char* LimitName(Limit limit) {
  constexpr const char* kNames[] = {"narrow 4:1", "narrow 4:2", "widen 1:4",
                                    "widen 2:4",  "copy 4:4",   "min/max read"};
  return kNames[static_cast<int>(limit)];
}

void RunLimit(Limit limit, const uint8_t* x, size_t size, uint8_t* y, bool stream) {
  HWY_DYNAMIC_DISPATCH(RunLimitHere)(limit, x, size, y, stream);
}

}  // namespace bench
}  // namespace quantd
#endif
