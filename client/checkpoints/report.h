// What a conversion does, or did, with each tensor.
#ifndef QUANTD_CHECKPOINTS_REPORT_H_
#define QUANTD_CHECKPOINTS_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "quantd/shape.h"

namespace quantd::checkpoints {

// A tensor of the model, or a quantized weight of it.
struct ReportedTensor {
  std::string name;
  absl::string_view dtype;                     // that of a quantized weight's codes
  Shape shape;                                 // of a quantized weight, and not of its codes
  std::string layout;                          // what it became; empty: it was not converted
  std::string reason;                          // then: why
  bool left_out = false;                       // then: not copied either
  uint64_t bytes_before = 0, bytes_after = 0;  // all of its parts
};

struct Report {
  std::vector<ReportedTensor> tensors;  // in the model's order
  uint64_t bytes_before = 0, bytes_after = 0;
  // What --dry_run prints: a line a tensor, and the totals.
  std::string Text() const;
  // {"tensors": [{"name", "dtype", "shape", "layout" or "copied" or "left_out", "bytes_before",
  // "bytes_after"}], "bytes_before", "bytes_after"}; `more`: members before those, each with a
  // comma behind it.
  std::string Json(absl::string_view more = "") const;
};

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_REPORT_H_
