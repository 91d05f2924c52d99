#include "checkpoints/errors.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "files/text.h"

namespace quantd::checkpoints {
namespace {

constexpr char kWeight[] = "quantd/weight-error";
constexpr char kFile[] = "quantd/file-error";

absl::Status Marked(absl::Status status) {
  status.SetPayload(kFile, absl::Cord("1"));
  return status;
}

}  // namespace

absl::Status WeightError(const absl::Status& status, absl::string_view weight) {
  if (status.ok() || absl::IsCancelled(status) || IsFileError(status) || IsWeightError(status)) {
    return status;
  }
  absl::Status result(status.code(), cli::Printable(absl::StrCat("cannot convert '", weight,
                                                                 "': ", status.message())));
  result.SetPayload(kWeight, absl::Cord("1"));
  return result;
}

bool IsWeightError(const absl::Status& status) { return status.GetPayload(kWeight).has_value(); }

absl::Status FileError(int error, absl::string_view what) {
  return Marked(absl::ErrnoToStatus(error, cli::Printable(what)));
}

absl::Status ContentError(absl::string_view text) {
  return Marked(absl::InvalidArgumentError(cli::Printable(text)));
}

bool IsFileError(const absl::Status& status) { return status.GetPayload(kFile).has_value(); }

}  // namespace quantd::checkpoints
