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

// The most memory for bins, if there are very many channels.
constexpr uint64_t kMostCalibratorBytes = uint64_t{1} << 30;

class LocalCalibration : public CalibrationRun {
 public:
  LocalCalibration(Calibrator calibrator, bool return_state, const Executor& executor)
      : calibrator_(std::move(calibrator)), return_state_(return_state), executor_(executor) {}

  absl::Status Add(const TensorView& x) override {
    const absl::Status fits = Fits(calibrator_.BytesWith(x));
    return fits.ok() ? calibrator_.Add(x, executor_, Never) : fits;
  }
  absl::Status AddState(absl::string_view state) override {
    const absl::Span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(state.data()),
                                          state.size());
    const absl::Status fits = Fits(calibrator_.BytesWithState(bytes));
    return fits.ok() ? calibrator_.Merge(bytes) : fits;
  }
  absl::StatusOr<Calibrated> Finish() override {
    QUANTD_ASSIGN_OR_RETURN(Calibration result, calibrator_.Result(executor_, Never));
    return Calibrated{std::move(result), return_state_ ? calibrator_.State() : ""};
  }

 private:
  static absl::Status Fits(const absl::StatusOr<uint64_t>& bytes) {
    if (!bytes.ok() || *bytes <= kMostCalibratorBytes) return bytes.status();
    return absl::ResourceExhaustedError(absl::StrCat(
        "these channels would take ", *bytes, " bytes, ", kMostCalibratorBytes, " are allowed"));
  }

  Calibrator calibrator_;
  const bool return_state_;
  const Executor& executor_;
};

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

  absl::StatusOr<std::unique_ptr<CalibrationRun>> Calibrate(const CalibrationOptions& options,
                                                            bool return_state) override {
    QUANTD_ASSIGN_OR_RETURN(Calibrator calibrator, Calibrator::Create(options));
    return std::make_unique<LocalCalibration>(std::move(calibrator), return_state, executor_);
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

absl::StatusOr<std::unique_ptr<Engine>> MakeLocalEngine(int threads, const std::string& simd) {
  QUANTD_RETURN_IF_ERROR(CheckEnvironmentTarget());
  if (!simd.empty()) QUANTD_RETURN_IF_ERROR(SelectTarget(simd));
  return std::make_unique<LocalEngine>(threads);
}

}  // namespace quantd::cli
