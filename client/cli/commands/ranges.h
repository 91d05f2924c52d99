// The inputs of calibrations and embeddings, a calibration, and files with its result:
// client/FORMAT.md, "Ranges".
#ifndef QUANTD_CLI_COMMANDS_RANGES_H_
#define QUANTD_CLI_COMMANDS_RANGES_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "commands/commands.h"
#include "commands/report.h"
#include "engine/parameters.h"
#include "files/tensor_file.h"
#include "quantd/calibration.h"
#include "quantd/executor.h"

namespace quantd::cli {

// The tensor of a .npy. `output`: as for Source::View. Returns INVALID_ARGUMENT with the path for
// another format, and for errors in the file.
absl::StatusOr<Operand> OpenInput(const std::string& path, const std::string& output);

// Adds values or a state; RESOURCE_EXHAUSTED if the bins of so many channels would take more than
// 1 GiB.
absl::Status AddValues(const TensorView& x, const Executor& executor, Calibrator* calibrator);
absl::Status AddState(absl::Span<const uint8_t> state, Calibrator* calibrator);

// The key of a calibration's description, as JSON, in the metadata of its output.
inline constexpr char kCalibrationKey[] = "quantd.calibration";

// Adds range, scale and zero_point to an output, and their description as metadata.
struct RangesParts {
  size_t range = 0, scale = 0;
  std::optional<size_t> zero_point = {};
};
RangesParts AddRanges(const Calibration& calibration, const CalibrationOptions& options,
                      Output* output);
// Writes their elements. REQUIRES: the output is created.
void FillRanges(const Calibration& calibration, const CalibrationOptions& options,
                const RangesParts& parts, Output* output);

// The options and the result, as in the metadata and in reports.
Json CalibrationJson(const Calibration& calibration, const CalibrationOptions& options);

// Scale, zero point, type and axis of a .safetensors that calibrate has written.
absl::StatusOr<GivenScales> ReadCalibration(const std::string& path);

// Ranges for embeddings: a .npy with two rows, or the `range` of a .safetensors.
absl::StatusOr<Operand> OpenRanges(const std::string& path, const std::string& output);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_RANGES_H_
