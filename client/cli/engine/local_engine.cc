// Calls the core directly on mapped tensors. Its memory does not grow with the file.
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/engine.h"
#include "quantd/dequantize.h"
#include "quantd/executor.h"
#include "quantd/quantize.h"
#include "quantd/quantize_embeddings.h"
#include "quantd/targets.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

bool Never() { return false; }

// The most memory for computed ranges and scales.
constexpr uint64_t kMostScratchBytes = uint64_t{160} << 20;

class LocalEngine : public Engine {
 public:
  explicit LocalEngine(int threads) : executor_(threads) {}

  absl::Status Quantize(const QuantizeParameters& p, absl::Span<uint8_t> y,
                        QuantizationError* error) override {
    QUANTD_ASSIGN_OR_RETURN(const QuantizePlan plan, PlanQuantize(p));
    return quantd::Quantize(plan, p.x.bytes, executor_, Never, y, error);
  }

  absl::Status Dequantize(const DequantizeParameters& p, absl::Span<uint8_t> y) override {
    QUANTD_ASSIGN_OR_RETURN(const DequantizePlan plan, PlanDequantize(p));
    return quantd::Dequantize(plan, p.x.bytes, executor_, Never, y);
  }

  absl::Status QuantizeEmbeddings(const QuantizeEmbeddingsParameters& p, absl::Span<uint8_t> y,
                                  QuantizationError* error) override {
    QUANTD_ASSIGN_OR_RETURN(const QuantizeEmbeddingsPlan plan, PlanQuantizeEmbeddings(p));
    return quantd::QuantizeEmbeddings(plan, p.x.bytes, executor_, Never, y, error);
  }

  absl::Status DynamicQuantize(const DynamicQuantizeParameters& p,
                               const DynamicQuantizeOutput& output,
                               QuantizationError* error) override {
    QUANTD_ASSIGN_OR_RETURN(const DynamicQuantizePlan plan, PlanDynamicQuantize(p));
    const uint64_t bytes = ScratchBytes(plan, executor_.threads());
    if (bytes > kMostScratchBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("its ", plan.layout.scale_count, " scales need ", bytes,
                       " bytes of memory at a time, ", "quantctl takes ", kMostScratchBytes,
                       " at most; choose larger blocks, or blocks along the last dimension"));
    }
    return quantd::DynamicQuantize(plan, p.x.bytes, executor_, Never, output, error);
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
