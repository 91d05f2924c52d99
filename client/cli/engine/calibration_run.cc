#include "engine/calibration_run.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

// The most memory for bins, if there are very many channels.
constexpr uint64_t kMostCalibratorBytes = uint64_t{1} << 30;

absl::Status Fits(const absl::StatusOr<uint64_t>& bytes) {
  if (!bytes.ok() || *bytes <= kMostCalibratorBytes) return bytes.status();
  return absl::ResourceExhaustedError(absl::StrCat("these channels would take ", *bytes, " bytes, ",
                                                   kMostCalibratorBytes, " are allowed"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CalibrationRun>> CalibrationRun::Create(
    const CalibrationOptions& options, int threads) {
  QUANTD_ASSIGN_OR_RETURN(Calibrator calibrator, Calibrator::Create(options));
  return std::unique_ptr<CalibrationRun>(new CalibrationRun(std::move(calibrator), threads));
}

absl::Status CalibrationRun::Add(const TensorView& x) {
  QUANTD_RETURN_IF_ERROR(Fits(calibrator_.BytesWith(x)));
  return calibrator_.Add(x, executor_, [] { return false; });
}

absl::Status CalibrationRun::AddState(absl::string_view state) {
  const absl::Span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(state.data()),
                                        state.size());
  QUANTD_RETURN_IF_ERROR(Fits(calibrator_.BytesWithState(bytes)));
  return calibrator_.Merge(bytes);
}

absl::StatusOr<Calibration> CalibrationRun::Result() const {
  return calibrator_.Result(executor_, [] { return false; });
}

}  // namespace quantd::cli
