// The SIMD targets, and one function per target that fills its table. Files that are compiled for
// all targets include this before Highway.
#ifndef QUANTD_SRC_KERNELS_SIMD_TARGETS_H_
#define QUANTD_SRC_KERNELS_SIMD_TARGETS_H_

// Only these are worth their code size: AVX-512 and AVX2 on x86, NEON on Arm. Older x86 uses the
// scalar table; SVE vectors can't be members of a struct. HWY_SCALAR or HWY_EMU128, one of which
// Highway needs as a baseline on x86, is compiled to nothing.
#define HWY_DISABLED_TARGETS (~(QUANTD_SIMD_TARGETS | HWY_BASELINE_SCALAR))
// A sanitized build takes minutes per target, so it has only one (CMakeLists.txt).
#ifndef QUANTD_SIMD_TARGETS
#define QUANTD_SIMD_TARGETS (HWY_AVX3 | HWY_AVX2 | HWY_NEON)
#endif

#include "kernels/kernel_table.h"

namespace quantd {

void FillScalarTable(KernelTable& table);
void FillScalarErrors(KernelTable& table);  // parts of the scalar table
void FillScalarEmbed(KernelTable& table);
void FillScalarBins(KernelTable& table);
void FillScalarLayouts(KernelTable& table);

#define QUANTD_DECLARE_FILL(target)              \
  namespace target {                             \
  void FillQuantizeIntegers(KernelTable& table); \
  void FillQuantizeFloats(KernelTable& table);   \
  void FillDequantize(KernelTable& table);       \
  void FillRange(KernelTable& table);            \
  void FillConvert(KernelTable& table);          \
  void FillErrors(KernelTable& table);           \
  void FillScaleColumns(KernelTable& table);     \
  void FillEmbed(KernelTable& table);            \
  void FillBins(KernelTable& table);             \
  void FillGguf(KernelTable& table);             \
  void FillBnb(KernelTable& table);              \
  }
QUANTD_DECLARE_FILL(N_AVX3)
QUANTD_DECLARE_FILL(N_AVX2)
QUANTD_DECLARE_FILL(N_NEON)
#undef QUANTD_DECLARE_FILL

}  // namespace quantd

#endif  // QUANTD_SRC_KERNELS_SIMD_TARGETS_H_
