#include "dequantize_job.h"

#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"

namespace quantd::cli {
namespace {

DataType TypeOf(const v1::Tensor& tensor) { return static_cast<DataType>(tensor.data_type()); }

}  // namespace

absl::StatusOr<DequantizeJob> DequantizeJob::Plan(Server* server, const Source* x,
                                                  const v1::DequantizeRequest& method,
                                                  const PieceLimits& limits) {
  DequantizeJob job;
  job.server_ = server;
  job.x_ = x;
  job.method_ = method;
  absl::StatusOr<BlockGrid> grid =
      ScaleGrid(x->shape(), Shape(method.scale().shape().begin(), method.scale().shape().end()),
                GranularityOf(method));
  if (!grid.ok()) return grid.status();
  job.grid_ = *std::move(grid);
  PieceCost cost;
  cost.request_element_bits = Info(x->type()).bits;
  cost.request_block_bits = Info(TypeOf(method.scale())).bits +
                            (method.has_zero_point() ? Info(TypeOf(method.zero_point())).bits : 0);
  cost.answer_element_bits = Info(static_cast<DataType>(method.output_type())).bits;
  absl::StatusOr<PiecePlan> plan = CutTensor(job.grid_, Cut::kAnywhere, cost, limits, true);
  if (!plan.ok()) return plan.status();
  job.plan_ = *std::move(plan);
  return job;
}

absl::Status DequantizeJob::Run(DequantizeSink sink, ProgressCallback progress) const {
  const ScaleTensor scale{TypeOf(method_.scale()), method_.scale().raw_data()};
  const ScaleTensor zero_point{TypeOf(method_.zero_point()), method_.zero_point().raw_data()};
  const auto type = static_cast<DataType>(method_.output_type());
  std::mutex mutex;
  return RunPieces(plan_.pieces.size(), [&](size_t index) {
    const Box& box = plan_.pieces[index];
    std::string x = x_->Read(box);
    const uint64_t bytes = x.size();
    v1::DequantizeRequest request = method_;
    if (plan_.pieces.size() > 1) {
      SetPieceGranularity(grid_, box, &request);
      SetPieceScales(scale, grid_, box, request.mutable_scale());
      if (method_.has_zero_point()) {
        SetPieceScales(zero_point, grid_, box, request.mutable_zero_point());
      }
    }
    SetTensor(x_->type(), box.size, std::move(x), request.mutable_x());
    absl::StatusOr<v1::DequantizeResponse> response = server_->client().Call(request);
    if (!response.ok()) {
      return ServerError(
          response.status(), server_->address(),
          x_->name().empty() ? "dequantize" : absl::StrCat("dequantize '", x_->name(), "'"));
    }
    const absl::StatusOr<std::string> y =
        TakeBytes(response->mutable_y(), "y", type, Product(box.size));
    if (!y.ok()) return y.status();
    progress(bytes);
    const std::lock_guard<std::mutex> lock(mutex);
    return sink(box, *y);
  });
}

}  // namespace quantd::cli
