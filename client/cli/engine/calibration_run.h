// A calibration in progress, in this process.
#ifndef QUANTD_CLI_ENGINE_CALIBRATION_RUN_H_
#define QUANTD_CLI_ENGINE_CALIBRATION_RUN_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "quantd/calibration.h"
#include "quantd/executor.h"

namespace quantd::cli {

class CalibrationRun {
 public:
  // `threads`: 0 is one per CPU.
  static absl::StatusOr<std::unique_ptr<CalibrationRun>> Create(const CalibrationOptions& options,
                                                                int threads);

  // RESOURCE_EXHAUSTED if the bins of so many channels would take more than 1 GiB.
  absl::Status Add(const TensorView& x);
  absl::Status AddState(absl::string_view state);
  absl::StatusOr<Calibration> Result() const;
  std::string State() const { return calibrator_.State(); }

 private:
  CalibrationRun(Calibrator calibrator, int threads)
      : calibrator_(std::move(calibrator)), executor_(threads) {}

  Calibrator calibrator_;
  const Executor executor_;
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_ENGINE_CALIBRATION_RUN_H_
