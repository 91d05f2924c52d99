// Calls the core directly on mapped tensors. Its memory does not grow with the file.
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/engine.h"
#include "quantd/executor.h"
#include "quantd/operation.h"
#include "quantd/targets.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

// The most memory for computed ranges and scales.
constexpr uint64_t kMostScratchBytes = uint64_t{160} << 20;

class LocalEngine : public Engine {
 public:
  explicit LocalEngine(int threads) : executor_(threads) {}

  absl::Status Run(const Parameters& parameters, const DynamicQuantizeOutput& output,
                   QuantizationError* error) override {
    QUANTD_ASSIGN_OR_RETURN(
        const OperationPlan plan,
        std::visit([](const auto& each) { return MakePlan(each); }, parameters));
    if (const auto* const dynamic = std::get_if<DynamicQuantizePlan>(&plan)) {
      const uint64_t bytes = ScratchBytes(*dynamic, executor_.threads());
      if (bytes > kMostScratchBytes) {
        return absl::ResourceExhaustedError(
            absl::StrCat("its ", dynamic->layout.scale_count, " scales need ", bytes,
                         " bytes of memory at a time, quantctl takes ", kMostScratchBytes,
                         " at most; choose larger blocks, or blocks along the last dimension"));
      }
    }
    const auto x = std::visit([](const auto& each) { return each.x.bytes; }, parameters);
    return Execute(plan, x, executor_, [] { return false; }, output, error);
  }

 private:
  const Executor executor_;
};

}  // namespace

absl::Status SelectSimd(const std::string& simd) {
  QUANTD_RETURN_IF_ERROR(CheckEnvironmentTarget());
  return simd.empty() ? absl::OkStatus() : SelectTarget(simd);
}

absl::StatusOr<std::unique_ptr<Engine>> MakeLocalEngine(int threads, const std::string& simd) {
  QUANTD_RETURN_IF_ERROR(SelectSimd(simd));
  return std::make_unique<LocalEngine>(threads);
}

}  // namespace quantd::cli
