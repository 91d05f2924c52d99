
#include "absl/strings/string_view.h"
// Dequantizing one tensor of any size, in pieces that give the same bytes as one request would.
#ifndef QUANTD_CLI_DEQUANTIZE_JOB_H_
#define QUANTD_CLI_DEQUANTIZE_JOB_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "pieces.h"
#include "quantize_job.h"
#include "server.h"
#include "source.h"

namespace quantd::cli {

// Called from several threads, one at a time, with the bytes of one piece of y.
using DequantizeSink = absl::FunctionRef<absl::Status(const Box& box, absl::string_view y)>;

class DequantizeJob {
 public:
  // `method` is the request without x: scale, zero_point and tensor_scale as raw_data, output_type
  // set. `server` and `x` must outlive the job.
  static absl::StatusOr<DequantizeJob> Plan(Server* server, const Source* x,
                                            const v1::DequantizeRequest& method,
                                            const PieceLimits& limits);

  size_t pieces() const { return plan_.pieces.size(); }
  absl::Status Run(DequantizeSink sink, ProgressCallback progress) const;

 private:
  DequantizeJob() = default;
  Server* server_ = nullptr;
  const Source* x_ = nullptr;
  v1::DequantizeRequest method_;
  BlockGrid grid_;
  PiecePlan plan_;
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_DEQUANTIZE_JOB_H_
