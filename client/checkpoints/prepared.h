// An opened model and the decisions for it: the common start of a dry run and a run.
#ifndef QUANTD_CHECKPOINTS_PREPARED_H_
#define QUANTD_CHECKPOINTS_PREPARED_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "checkpoints/conversion.h"
#include "checkpoints/convert.h"
#include "checkpoints/json.h"
#include "checkpoints/model.h"
#include "checkpoints/output_plan.h"
#include "checkpoints/report.h"

namespace quantd::checkpoints {

struct Prepared {
  ConvertOptions options;  // `out` without trailing slashes
  Model model;
  Conversion conversion;
  bool is_folder = false;  // whether OUT is a folder
  size_t files = 0;        // number of weight files in OUT

  // The plan of one of the files.
  absl::StatusOr<OutputFile> Plan(size_t index) const;
  // What a run must have in common with the run that it resumes.
  Json State() const;
  // Reports the tensors of a file, and those that are in no file.
  void Report(const OutputFile& plan, checkpoints::Report* report) const;
  void ReportLeftOut(checkpoints::Report* report) const;
};

absl::StatusOr<Prepared> Prepare(const ConvertOptions& options);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_PREPARED_H_
