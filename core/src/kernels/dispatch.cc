// Selects the table: see quantd/targets.h.
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/simd_targets.h"
#include "quantd/targets.h"
// After kernels/simd_targets.h, which restricts Highway's targets.
#include "hwy/highway.h"

namespace quantd {
namespace {

// The targets of this build, best first.
struct Target {
  const char* name;
  int64_t highway;  // bit in hwy::SupportedTargets(); 0: all CPUs support it
  void (*fill)(KernelTable&);
};

#define QUANTD_FILL(target)              \
  [](KernelTable& table) {               \
    target::FillQuantizeIntegers(table); \
    target::FillQuantizeFloats(table);   \
    target::FillDequantize(table);       \
    target::FillRange(table);            \
    target::FillConvert(table);          \
    target::FillErrors(table);           \
    target::FillScaleColumns(table);     \
    target::FillEmbed(table);            \
    target::FillBins(table);             \
    target::FillGguf(table);             \
    target::FillBnb(table);              \
  }
const Target kTargets[] = {
#if HWY_TARGETS & HWY_AVX3
    {"avx512", HWY_AVX3, QUANTD_FILL(N_AVX3)},
#endif
#if HWY_TARGETS & HWY_AVX2
    {"avx2", HWY_AVX2, QUANTD_FILL(N_AVX2)},
#endif
#if HWY_TARGETS & HWY_NEON
    {"neon", HWY_NEON, QUANTD_FILL(N_NEON)},
#endif
    {"scalar", 0, FillScalarTable},
};
#undef QUANTD_FILL

// The tables that this CPU can run.
struct Tables {
  std::array<KernelTable, std::size(kTargets)> tables = {};
  size_t count = 0;

  Tables() {
    const int64_t supported = hwy::SupportedTargets();
    for (const Target& target : kTargets) {
      if (target.highway != 0 && (supported & target.highway) == 0) continue;
      KernelTable& table = tables[count++];
      table.name = target.name;
      target.fill(table);
    }
  }
};

const Tables& AllTables() {
  static const Tables tables;
  return tables;
}

absl::StatusOr<const KernelTable*> Choose(std::string_view name) {
  if (name.empty()) return &AllTables().tables[0];
  if (const KernelTable* table = FindKernels(std::string(name).c_str()); table != nullptr) {
    return table;
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown SIMD target \"", std::string(name),
                                                 "\": use ",
                                                 absl::StrJoin(SupportedTargets(), ", ")));
}

std::string_view EnvironmentTarget() {
  const char* name = std::getenv("QUANTD_SIMD");
  return name == nullptr ? "" : name;
}

// Null until the first use or the first SelectTarget.
std::atomic<const KernelTable*> current_table = nullptr;

}  // namespace

const KernelTable& Kernels() {
  const KernelTable* table = current_table.load(std::memory_order_acquire);
  if (table != nullptr) return *table;
  const absl::StatusOr<const KernelTable*> wanted = Choose(EnvironmentTarget());
  // If SelectTarget was called first on another thread, its choice is kept.
  current_table.compare_exchange_strong(table, wanted.ok() ? *wanted : &AllTables().tables[0],
                                        std::memory_order_acq_rel);
  return *current_table.load(std::memory_order_acquire);
}

const KernelTable* FindKernels(const char* name) {
  const Tables& all = AllTables();
  for (size_t i = 0; i < all.count; ++i) {
    if (std::strcmp(all.tables[i].name, name) == 0) return &all.tables[i];
  }
  return nullptr;
}

std::vector<std::string> SupportedTargets() {
  const Tables& all = AllTables();
  std::vector<std::string> names;
  names.reserve(all.count);
  for (size_t i = 0; i < all.count; ++i) names.emplace_back(all.tables[i].name);
  return names;
}

absl::Status SelectTarget(std::string_view name) {
  const absl::StatusOr<const KernelTable*> table = Choose(name);
  if (!table.ok()) return table.status();
  current_table.store(*table, std::memory_order_release);
  return absl::OkStatus();
}

std::string_view CurrentTarget() { return Kernels().name; }

absl::Status CheckEnvironmentTarget() {
  const absl::StatusOr<const KernelTable*> table = Choose(EnvironmentTarget());
  if (table.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("QUANTD_SIMD: ", table.status().message()));
}

}  // namespace quantd
