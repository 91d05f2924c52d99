// A model, opened, and what becomes of it, decided: what a dry run and a run begin with.
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
  ConvertOptions options;  // `out` without slashes at its end
  Model model;
  Conversion conversion;
  bool is_folder = false;  // OUT
  size_t files = 0;        // of weights, in OUT

  // The plan of one of the files.
  absl::StatusOr<OutputFile> Plan(size_t index) const;
  // What a run must have in common with the one that it goes on with.
  Json State() const;
  // Says what becomes of the tensors of a file, and of those that are in none.
  void Report(const OutputFile& plan, checkpoints::Report* report) const;
  void ReportLeftOut(checkpoints::Report* report) const;
};

absl::StatusOr<Prepared> Prepare(const ConvertOptions& options);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_PREPARED_H_
