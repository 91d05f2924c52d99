// Reports what a conversion does, or did, with each tensor.
#ifndef QUANTD_CHECKPOINTS_REPORT_H_
#define QUANTD_CHECKPOINTS_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "quantd/shape.h"

namespace quantd::checkpoints {

// A tensor of the model, or one of its quantized weights.
struct ReportedTensor {
  std::string name;
  absl::string_view dtype;                     // of a quantized weight: its codes'
  Shape shape;                                 // of a quantized weight: not that of its codes
  std::string layout;                          // the new layout; empty: it was not converted
  std::string reason;                          // if it was not converted: why
  bool left_out = false;                       // if it was not converted: it was not copied either
  uint64_t bytes_before = 0, bytes_after = 0;  // all of its parts
};

struct Report {
  std::vector<ReportedTensor> tensors;  // in the model's order
  std::vector<std::string> foreign;     // .safetensors that are not the model's: not copied
  uint64_t bytes_before = 0, bytes_after = 0;
  // The text of --dry_run: one line per tensor, and the totals.
  std::string Text() const;
  // {"tensors": [{"name", "dtype", "shape", "layout" or "copied" or "left_out", "bytes_before",
  // "bytes_after"}], "files_left_out": [..] if there are any, "bytes_before", "bytes_after"};
  // `more`: members before those, each followed by a comma.
  std::string Json(absl::string_view more = "") const;
};

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_REPORT_H_
