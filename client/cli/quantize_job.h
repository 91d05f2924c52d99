// Quantizing one tensor of any size: cut into pieces that give the same bytes as one request would.
//
//   absl::StatusOr<QuantizeJob> job = QuantizeJob::Plan(&server, &x, method, limits);
//   ... make room for job->form() ...
//   absl::StatusOr<JobReport> report = job->Run(sink, progress);
//
// What a piece needs to know about the others is found first:
//   - scales given, or found in blocks that fit into a piece: nothing;
//   - blocks larger than a piece (one scale for the whole tensor): their ranges are found here, the
//     server makes scales and zero points of them (a DynamicQuantize of nothing but the ranges),
//     and the pieces are sent with these to Quantize;
//   - NVFP4: the largest |x| of the tensor is found here; the server makes each piece's scales of
//   the
//     blocks' ranges and of it; then likewise.
#ifndef QUANTD_CLI_QUANTIZE_JOB_H_
#define QUANTD_CLI_QUANTIZE_JOB_H_

#include <functional>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pieces.h"
#include "quantd/quantization_error.h"
#include "range_scales.h"
#include "scan.h"
#include "server.h"
#include "source.h"

namespace quantd::cli {

// How to quantize; x is not set. Exactly one is there.
struct QuantizeMethod {
  std::optional<v1::QuantizeRequest> given;  // scale and zero_point set, as raw_data
  std::optional<v1::DynamicQuantizeRequest> dynamic;

  DataType output_type() const;
  bool report_error() const;
};

// The types and shapes of what comes out. zero_point and tensor_scale: kUnspecified when absent.
struct QuantizedForm {
  DataType y = DataType::kUnspecified;
  DataType scale = DataType::kUnspecified;
  DataType zero_point = DataType::kUnspecified;
  DataType tensor_scale = DataType::kUnspecified;
  BlockGrid grid;
};

// One piece, done. All bytes packed; scale and zero_point are those of the blocks that it touches.
struct QuantizedPiece {
  const Box& box;
  absl::string_view x, y, scale, zero_point, tensor_scale;
};
// Called from several threads, one at a time.
using QuantizeSink = absl::FunctionRef<absl::Status(const QuantizedPiece&)>;
// Called from several threads with the number of bytes of x that were dealt with.
using ProgressCallback = absl::FunctionRef<void(uint64_t bytes)>;

struct JobReport {
  std::optional<QuantizationError> error;  // if the method says report_error
  size_t pieces = 1;
};

class QuantizeJob {
 public:
  // Asks the server, with a tensor of one zero, which types will come back (a wrong method fails
  // here, before anything is written), and cuts x. `server` and `x` must outlive the job.
  static absl::StatusOr<QuantizeJob> Plan(Server* server, const Source* x,
                                          const QuantizeMethod& method, const PieceLimits& limits);

  const QuantizedForm& form() const { return form_; }
  size_t pieces() const { return plan_.pieces.size(); }
  // Bytes of x that Run will report as progress: twice those of x when it is read twice.
  uint64_t work() const;

  absl::StatusOr<JobReport> Run(QuantizeSink sink, ProgressCallback progress) const;

 private:
  enum class Strategy : uint8_t { kOneRequest, kPiecesAlone, kRangesFirst, kTwoLevel };
  struct Answer {
    std::string y;
    ScaleTensor scale, zero_point, tensor_scale;  // of the blocks of the piece
    QuantizationError error;
  };

  QuantizeJob() = default;
  absl::Status Probe();
  absl::Status CutPieces(const PieceLimits& limits);
  absl::StatusOr<Answer> RunPiece(const Box& box, const std::string& x, const Scan& scan,
                                  const RangeScales& known, float largest) const;
  absl::StatusOr<Answer> RunGiven(const Box& box, std::string x, const v1::QuantizeRequest& method,
                                  const ScaleTensor& scale, const ScaleTensor& zero_point) const;
  absl::StatusOr<Answer> RunDynamic(const Box& box, std::string x) const;
  absl::StatusOr<Answer> RunKnownScales(const Box& box, const std::string& x,
                                        const ScaleTensor& scale,
                                        const ScaleTensor& zero_point) const;
  absl::StatusOr<Answer> RunTwoLevel(const Box& box, const std::string& x, const Scan& scan,
                                     float largest) const;
  // Reads all of x: the ranges of all blocks (two levels: of the whole), and what each piece's scan
  // found besides.
  absl::Status FindRanges(std::vector<Range>* ranges, std::vector<Scan>* scans,
                          ProgressCallback progress) const;
  absl::Status CheckFinite(const Box& box, const Scan& scan) const;
  absl::Status Failed(const absl::Status& status) const;

  Server* server_ = nullptr;
  const Source* x_ = nullptr;
  QuantizeMethod method_;
  QuantizedForm form_;
  PiecePlan plan_;
  Strategy strategy_ = Strategy::kOneRequest;
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_QUANTIZE_JOB_H_
