// While an object of this class lives, this thread treats denormal floats as 0.
//
// Denormal products are handled in microcode on some CPUs (66 GB/s become 0.9). For the loop of two
// fused multiply-adds this changes no result: |scale| >= 2^-100, so the quotient of a denormal x
// rounds to 0 either way, and a product or a correction below 2^-126 is far below half an ulp of
// any quotient near a tie. Do not use it elsewhere: a division, a range or a dequantized value may
// be denormal.
#ifndef QUANTD_SRC_KERNELS_FLUSH_DENORMALS_H_
#define QUANTD_SRC_KERNELS_FLUSH_DENORMALS_H_

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace quantd {

class FlushDenormals {
 public:
  FlushDenormals() : saved_(Read()) {
    if ((saved_ & kFlush) != kFlush) Write(saved_ | kFlush);
  }
  ~FlushDenormals() {
    if ((saved_ & kFlush) != kFlush) Write(saved_);
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__x86_64__)
  using Word = unsigned int;
  static constexpr Word kFlush = 0x8040;  // MXCSR: flush to zero, denormals are zero
  static Word Read() { return _mm_getcsr(); }
  static void Write(Word word) { _mm_setcsr(word); }
#elif defined(__aarch64__)
  using Word = uint64_t;
  static constexpr Word kFlush = Word{1} << 24;  // FPCR.FZ
  static Word Read() {
    Word word;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void Write(Word word) { asm volatile("msr fpcr, %0" : : "r"(word) : "memory"); }
#else
  using Word = unsigned int;
  static constexpr Word kFlush = 0;
  static Word Read() { return 0; }
  static void Write(Word) {}
#endif
  Word saved_;
};

}  // namespace quantd

#endif  // QUANTD_SRC_KERNELS_FLUSH_DENORMALS_H_
