// Which table is used: quantd/targets.h, and finding a kernel in a table.
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
// After kernels/simd_targets.h, which says what Highway may use.
#include "hwy/highway.h"

namespace quantd {
namespace {

// The targets of this build, best first.
struct Target {
  const char* name;
  int64_t highway;  // bit in hwy::SupportedTargets(); 0: every CPU has it
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
  // A SelectTarget that came first on another thread wins.
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
    default:
      return Decoder::kUint8;
  }
}

}  // namespace

DequantizeKernel FindDequantize(const KernelTable& table, DataType input, ScaleMode mode) {
  return table.dequantize[static_cast<size_t>(DecoderOf(input))][static_cast<size_t>(mode)];
}

}  // namespace quantd
