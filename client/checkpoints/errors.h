// The errors of a conversion: caused by a weight, or by something else. Each is one printable line,
// even if names in a file are not printable.
#ifndef QUANTD_CHECKPOINTS_ERRORS_H_
#define QUANTD_CHECKPOINTS_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"

namespace quantd::checkpoints {

// A weight can't be converted: "cannot convert 'm.weight': NaN at [3, 17]". CANCELLED, and errors
// of files (see IsFileError), are returned unchanged.
absl::Status WeightError(const absl::Status& status, absl::string_view weight);
// Whether a status was made by WeightError. quantctl's exit code is then 1, otherwise 2.
bool IsWeightError(const absl::Status& status);

// An error of the operating system about a file: "cannot write out/x: No space left on device". The
// text of these errors may have holes for values, as in absl::Substitute.
absl::Status FileError(int error, absl::string_view what);
template <typename... Values>
absl::Status FileError(int error, absl::string_view what, const Values&... values) {
  return FileError(error, absl::Substitute(what, values...));
}
// An error in the contents of a file.
absl::Status ContentError(absl::string_view text);
template <typename... Values>
absl::Status ContentError(absl::string_view text, const Values&... values) {
  return ContentError(absl::Substitute(text, values...));
}
bool IsFileError(const absl::Status& status);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_ERRORS_H_
