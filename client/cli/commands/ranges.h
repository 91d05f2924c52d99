// Files with the result of a calibration: client/FORMAT.md, "Ranges".
#ifndef QUANTD_CLI_COMMANDS_RANGES_H_
#define QUANTD_CLI_COMMANDS_RANGES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "commands/commands.h"
#include "commands/input.h"
#include "commands/report.h"
#include "engine/quantization_spec.h"
#include "quantd/calibration.h"

namespace quantd::cli {

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

// A tensor of a file that calibrate has written; INVALID_ARGUMENT if there is none with this name.
absl::StatusOr<const StoredTensor*> FindCalibrated(const TensorFile& file, absl::string_view name);

// Scale, zero point, type and axis of a .safetensors that calibrate has written.
absl::StatusOr<GivenScales> ReadCalibration(const std::string& path);

// Ranges for embeddings: a .npy with two rows, or the `range` of a .safetensors.
absl::Status OpenRanges(const std::string& path, const std::string& output, Input* input);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_RANGES_H_
