// What went wrong with a conversion: the fault of a weight, or of anything else. One printable line
// each, whatever the names in a file are.
#ifndef QUANTD_CHECKPOINTS_ERRORS_H_
#define QUANTD_CHECKPOINTS_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace quantd::checkpoints {

// A weight cannot be converted: "cannot convert 'm.weight': NaN at [3, 17]". CANCELLED, and errors
// of files (which IsFileError knows), come back as they are.
absl::Status WeightError(const absl::Status& status, absl::string_view weight);
// Whether a status came through WeightError. quantctl's exit code is then 1, else 2.
bool IsWeightError(const absl::Status& status);

// An error of the operating system about a file: "cannot write out/x: No space left on device".
absl::Status FileError(int error, absl::string_view what);
// An error about what a file holds.
absl::Status ContentError(absl::string_view text);
bool IsFileError(const absl::Status& status);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_ERRORS_H_
