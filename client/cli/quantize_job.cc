#include "quantize_job.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "range_scales.h"
#include "smallest_int8.h"

namespace quantd::cli {
namespace {

// Above this a first pass over x would take more memory than it is worth.
constexpr int64_t kMostRanges = 8 << 20;
// Pieces whose elements lie together in shorter runs read x in a poor order; better twice in order.
constexpr int64_t kShortRunBytes = 4096;

DataType TypeOf(const v1::Tensor& tensor) { return static_cast<DataType>(tensor.data_type()); }

QuantizationError FromMessage(const v1::QuantizationError& message) {
  return {message.sqnr_db(), message.mean_squared_error(), message.max_absolute_error(),
          message.saturated_elements(), message.non_finite_elements()};
}

absl::StatusOr<ScaleTensor> TakeScales(v1::Tensor* tensor, absl::string_view field, DataType type,
                                       int64_t count) {
  absl::StatusOr<std::string> bytes = TakeBytes(tensor, field, type, count);
  if (!bytes.ok()) return bytes.status();
  return ScaleTensor{type, *std::move(bytes)};
}

ScaleTensor ToFloatScales(const ScaleTensor& scales, int64_t count, float factor) {
  std::vector<float> values = ToFloats(scales.type, count, scales.bytes);
  for (float& value : values) value *= factor;
  return {DataType::kFloat,
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4)};
}

// The sums behind an error report of a piece whose elements were scanned.
ErrorSums SumsOf(const QuantizationError& error, const Scan& scan) {
  ErrorSums sums;
  sums.signal = scan.signal;
  sums.noise = error.mean_squared_error * static_cast<double>(scan.finite);
  sums.max_absolute_error = error.max_absolute_error;
  sums.finite_elements = scan.finite;
  sums.saturated_elements = error.saturated_elements;
  sums.non_finite_elements = scan.non_finite;
  return sums;
}

}  // namespace

DataType QuantizeMethod::output_type() const {
  return static_cast<DataType>(given ? given->output_type() : dynamic->output_type());
}

bool QuantizeMethod::report_error() const {
  return given ? given->report_error() : dynamic->report_error();
}

absl::Status QuantizeJob::Failed(const absl::Status& status) const {
  return ServerError(status, server_->address(),
                     x_->name().empty() ? "quantize" : absl::StrCat("quantize '", x_->name(), "'"));
}

absl::StatusOr<QuantizeJob> QuantizeJob::Plan(Server* server, const Source* x,
                                              const QuantizeMethod& method,
                                              const PieceLimits& limits) {
  QuantizeJob job;
  job.server_ = server;
  job.x_ = x;
  job.method_ = method;
  absl::StatusOr<BlockGrid> grid = method.given
                                       ? ScaleGrid(x->shape(),
                                                   Shape(method.given->scale().shape().begin(),
                                                         method.given->scale().shape().end()),
                                                   GranularityOf(*method.given))
                                       : DynamicGrid(x->shape(), GranularityOf(*method.dynamic));
  if (!grid.ok()) {
    if (x->name().empty()) return grid.status();
    return absl::Status(grid.status().code(),
                        absl::StrCat("tensor '", x->name(), "': ", grid.status().message(),
                                     "; --tensor chooses tensors"));
  }
  job.form_.grid = *std::move(grid);
  if (absl::Status status = job.Probe(); !status.ok()) return status;
  if (absl::Status status = job.CutPieces(limits); !status.ok()) return status;
  return job;
}

absl::Status QuantizeJob::Probe() {
  form_.y = method_.output_type();
  if (method_.given) {
    form_.scale = TypeOf(method_.given->scale());
    if (method_.given->has_zero_point()) form_.zero_point = TypeOf(method_.given->zero_point());
    return absl::OkStatus();
  }
  v1::DynamicQuantizeRequest request = *method_.dynamic;
  request.set_report_error(false);
  const Shape ones(x_->shape().size(), 1);
  SetTensor(x_->type(), ones, std::string(ByteSize(x_->type(), 1), '\0'), request.mutable_x());
  const absl::StatusOr<v1::DynamicQuantizeResponse> answer = server_->client().Call(request);
  if (!answer.ok()) return Failed(answer.status());
  form_.scale = TypeOf(answer->y_scale());
  if (answer->has_y_zero_point()) form_.zero_point = TypeOf(answer->y_zero_point());
  if (answer->has_y_tensor_scale()) form_.tensor_scale = TypeOf(answer->y_tensor_scale());
  for (const DataType type : {form_.y, form_.scale}) {
    if (FindDataType(static_cast<int>(type)) == nullptr) {
      return Failed(absl::InternalError("the server answered with an unknown type"));
    }
  }
  return absl::OkStatus();
}

absl::Status QuantizeJob::CutPieces(const PieceLimits& limits) {
  const auto bits = [](DataType type) {
    return type == DataType::kUnspecified ? 0 : Info(type).bits;
  };
  const int scale_bits = bits(form_.scale) + bits(form_.zero_point);
  PieceCost alone{bits(x_->type()), 0, bits(form_.y), 0};
  (method_.given ? alone.request_block_bits : alone.answer_block_bits) = scale_bits;
  // The scales of known ranges are sent as FLOAT; a row of ranges is 16 FLOATs for NVFP4.
  const int range_bits = form_.tensor_scale == DataType::kUnspecified ? 64 : 16 * 32 * 2;
  const PieceCost known{bits(x_->type()), std::max(32 + bits(form_.zero_point), range_bits),
                        bits(form_.y), scale_bits};

  const bool two_level = form_.tensor_scale != DataType::kUnspecified;
  const bool ranges_can_come_first = !method_.given && !two_level &&
                                     form_.grid.scales <= kMostRanges &&
                                     form_.scale != DataType::kFloat8E8M0;
  const Cut cut = method_.given ? Cut::kAnywhere : Cut::kBetweenBlocks;
  absl::StatusOr<PiecePlan> plan =
      CutTensor(form_.grid, cut, alone, limits, /*stretch=*/!ranges_can_come_first);
  strategy_ =
      plan.ok() && plan->pieces.size() == 1 ? Strategy::kOneRequest : Strategy::kPiecesAlone;
  const bool short_runs = !plan.ok() || plan->run * bits(x_->type()) / 8 < kShortRunBytes;
  if (strategy_ == Strategy::kPiecesAlone && two_level) {
    strategy_ = Strategy::kTwoLevel;
    plan = CutTensor(form_.grid, Cut::kBetweenBlocks, known, limits, true);
  } else if (strategy_ == Strategy::kPiecesAlone && ranges_can_come_first && short_runs) {
    strategy_ = Strategy::kRangesFirst;
    plan = CutTensor(form_.grid, Cut::kAnywhere, known, limits, true);
  }
  if (!plan.ok()) return plan.status();
  plan_ = *std::move(plan);
  return absl::OkStatus();
}

uint64_t QuantizeJob::work() const {
  const bool twice = strategy_ == Strategy::kRangesFirst || strategy_ == Strategy::kTwoLevel;
  return ByteSize(x_->type(), x_->elements()) * (twice ? 2 : 1);
}

absl::Status QuantizeJob::CheckFinite(const Box& box, const Scan& scan) const {
  if (method_.given || scan.first_non_finite < 0 ||
      method_.dynamic->non_finite() == v1::NON_FINITE_IGNORE) {
    return absl::OkStatus();
  }
  // Where in the whole tensor, not in the piece.
  int64_t rest = scan.first_non_finite;
  int64_t flat = 0;
  const Shape piece = RowMajorStrides(box.size), whole = RowMajorStrides(x_->shape());
  for (size_t d = 0; d < piece.size(); ++d) {
    flat += (box.begin[d] + rest / piece[d]) * whole[d];
    rest %= piece[d];
  }
  return Failed(
      absl::InvalidArgumentError(absl::StrCat("x has a NaN or an infinity at index ", flat)));
}

absl::Status QuantizeJob::FindRanges(std::vector<Range>* ranges, std::vector<Scan>* scans,
                                     ProgressCallback progress) const {
  const BlockGrid one = *DynamicGrid(x_->shape(), {});
  const BlockGrid& grid = strategy_ == Strategy::kTwoLevel ? one : form_.grid;
  ranges->resize(grid.scales);
  scans->resize(plan_.pieces.size());
  std::mutex mutex;
  return RunPieces(plan_.pieces.size(), [&](size_t index) {
    const Box& box = plan_.pieces[index];
    const std::string x = x_->Read(box);
    Scan& scan = (*scans)[index];
    scan = ScanPiece(ToFloats(x_->type(), Product(box.size), x), box, grid);
    if (absl::Status status = CheckFinite(box, scan); !status.ok()) return status;
    progress(x.size());
    // A Range is two FLOATs: copied in and out of the grid as elements of 64 bits.
    const absl::Span<uint8_t> all(reinterpret_cast<uint8_t*>(ranges->data()),
                                  ranges->size() * sizeof(Range));
    const std::lock_guard<std::mutex> lock(mutex);
    const Box blocks = grid.BlocksOf(box);
    std::string part = GatherBox(all, 64, RowMajorStrides(grid.counts), blocks);
    for (size_t i = 0; i < scan.ranges.size(); ++i) {
      Range range;
      std::memcpy(&range, part.data() + i * sizeof(Range), sizeof(Range));
      range.Add(scan.ranges[i]);
      std::memcpy(part.data() + i * sizeof(Range), &range, sizeof(Range));
    }
    ScatterBox({reinterpret_cast<const uint8_t*>(part.data()), part.size()}, 64, grid.counts,
               blocks, all);
    scan.ranges = {};
    return absl::OkStatus();
  });
}

absl::StatusOr<QuantizeJob::Answer> QuantizeJob::RunGiven(const Box& box, std::string x,
                                                          const v1::QuantizeRequest& method,
                                                          const ScaleTensor& scale,
                                                          const ScaleTensor& zero_point) const {
  v1::QuantizeRequest request = method;
  if (strategy_ != Strategy::kOneRequest) {
    SetPieceGranularity(form_.grid, box, &request);
    const Shape shape = form_.grid.scales == 1 ? Shape() : form_.grid.BlocksOf(box).size;
    SetTensor(scale.type, shape, scale.bytes, request.mutable_scale());
    if (zero_point.type != DataType::kUnspecified) {
      SetTensor(zero_point.type, shape, zero_point.bytes, request.mutable_zero_point());
    }
  }
  SetTensor(x_->type(), box.size, std::move(x), request.mutable_x());
  absl::StatusOr<v1::QuantizeResponse> response = server_->client().Call(request);
  if (!response.ok()) return response.status();
  absl::StatusOr<std::string> y = TakeBytes(response->mutable_y(), "y", form_.y, Product(box.size));
  if (!y.ok()) return y.status();
  Answer answer;
  answer.y = *std::move(y);
  answer.scale = scale;
  answer.zero_point = zero_point;
  answer.error = FromMessage(response->quantization_error());
  return answer;
}

absl::StatusOr<QuantizeJob::Answer> QuantizeJob::RunDynamic(const Box& box, std::string x) const {
  v1::DynamicQuantizeRequest request = *method_.dynamic;
  if (strategy_ != Strategy::kOneRequest) SetPieceGranularity(form_.grid, box, &request);
  SetTensor(x_->type(), box.size, std::move(x), request.mutable_x());
  absl::StatusOr<v1::DynamicQuantizeResponse> response = server_->client().Call(request);
  if (!response.ok()) return response.status();
  const int64_t blocks = Product(form_.grid.BlocksOf(box).size);
  Answer answer;
  absl::StatusOr<std::string> y = TakeBytes(response->mutable_y(), "y", form_.y, Product(box.size));
  if (!y.ok()) return y.status();
  answer.y = *std::move(y);
  absl::StatusOr<ScaleTensor> scale =
      TakeScales(response->mutable_y_scale(), "y_scale", form_.scale, blocks);
  if (!scale.ok()) return scale.status();
  answer.scale = *std::move(scale);
  if (form_.zero_point != DataType::kUnspecified) {
    absl::StatusOr<ScaleTensor> zero_point =
        TakeScales(response->mutable_y_zero_point(), "y_zero_point", form_.zero_point, blocks);
    if (!zero_point.ok()) return zero_point.status();
    answer.zero_point = *std::move(zero_point);
  }
  if (form_.tensor_scale != DataType::kUnspecified) {
    absl::StatusOr<ScaleTensor> tensor_scale =
        TakeScales(response->mutable_y_tensor_scale(), "y_tensor_scale", form_.tensor_scale, 1);
    if (!tensor_scale.ok()) return tensor_scale.status();
    answer.tensor_scale = *std::move(tensor_scale);
  }
  answer.error = FromMessage(response->quantization_error());
  return answer;
}

absl::StatusOr<QuantizeJob::Answer> QuantizeJob::RunKnownScales(
    const Box& box, const std::string& x, const ScaleTensor& scale,
    const ScaleTensor& zero_point) const {
  v1::QuantizeRequest method;
  method.set_output_type(method_.dynamic->output_type());
  method.set_report_error(method_.dynamic->report_error());
  if (method_.dynamic->has_saturate()) method.set_saturate(method_.dynamic->saturate());
  absl::StatusOr<Answer> answer = RunGiven(box, x, method, scale, zero_point);
  if (answer.ok() && form_.y == DataType::kInt8 && HasSmallestInt8(answer->y)) {
    const int64_t blocks = Product(form_.grid.BlocksOf(box).size);
    std::vector<float> zero_points(blocks, 0.0f);
    if (zero_point.type != DataType::kUnspecified) {
      zero_points = ToFloats(zero_point.type, blocks, zero_point.bytes);
    }
    RaiseSmallestInt8(ToFloats(x_->type(), Product(box.size), x), box, form_.grid,
                      ToFloats(scale.type, blocks, scale.bytes), zero_points, &answer->y,
                      &answer->error);
  }
  return answer;
}

absl::StatusOr<QuantizeJob::Answer> QuantizeJob::RunTwoLevel(const Box& box, const std::string& x,
                                                             const Scan& scan,
                                                             float largest) const {
  const absl::StatusOr<RangeScales> found =
      ScalesOfRanges(server_->client(), *method_.dynamic, scan.ranges, largest,
                     server_->info().max_message_bytes());
  if (!found.ok()) return found.status();
  float tensor_scale = 1;
  if (found->tensor_scale.bytes.size() == sizeof(float)) {
    std::memcpy(&tensor_scale, found->tensor_scale.bytes.data(), sizeof(float));
  }
  const int64_t blocks = static_cast<int64_t>(scan.ranges.size());
  absl::StatusOr<Answer> answer =
      RunKnownScales(box, x, ToFloatScales(found->scale, blocks, tensor_scale), {});
  if (!answer.ok()) return answer;
  answer->scale = found->scale;
  answer->tensor_scale = found->tensor_scale;
  return answer;
}

absl::StatusOr<JobReport> QuantizeJob::Run(QuantizeSink sink, ProgressCallback progress) const {
  std::vector<Range> ranges;
  std::vector<Scan> scans;  // kRangesFirst: what the first reading found
  RangeScales known;
  float largest = 0;
  if (strategy_ == Strategy::kRangesFirst || strategy_ == Strategy::kTwoLevel) {
    if (absl::Status status = FindRanges(&ranges, &scans, progress); !status.ok()) return status;
  }
  if (strategy_ == Strategy::kTwoLevel) largest = std::max(-ranges[0].minimum, ranges[0].maximum);
  if (strategy_ == Strategy::kRangesFirst) {
    absl::StatusOr<RangeScales> found =
        ScalesOfRanges(server_->client(), *method_.dynamic, ranges, std::nullopt,
                       server_->info().max_message_bytes());
    if (!found.ok()) return Failed(found.status());
    known = *std::move(found);
  } else if (method_.given) {
    known.scale = {form_.scale, method_.given->scale().raw_data()};
    known.zero_point = {form_.zero_point, method_.given->zero_point().raw_data()};
  }
  const bool scan_now =
      (strategy_ == Strategy::kPiecesAlone && (method_.report_error() || !method_.given)) ||
      strategy_ == Strategy::kTwoLevel;

  std::mutex mutex;
  ErrorSums sums;            // guarded by mutex
  QuantizationError single;  // of the only piece
  absl::Status status = RunPieces(plan_.pieces.size(), [&](size_t index) {
    const Box& box = plan_.pieces[index];
    const std::string x = x_->Read(box);
    Scan scan;
    if (scan_now) {
      scan = ScanPiece(ToFloats(x_->type(), Product(box.size), x), box, form_.grid);
      if (absl::Status finite = CheckFinite(box, scan); !finite.ok()) return finite;
    } else if (!scans.empty()) {
      scan = scans[index];
    }
    absl::StatusOr<Answer> answer = RunPiece(box, x, scan, known, largest);
    if (!answer.ok()) return Failed(answer.status());
    progress(x.size());
    const std::lock_guard<std::mutex> lock(mutex);
    sums.Add(SumsOf(answer->error, scan));
    single = answer->error;
    return sink({box, x, answer->y, answer->scale.bytes, answer->zero_point.bytes,
                 answer->tensor_scale.bytes});
  });
  if (!status.ok()) return status;
  JobReport report;
  report.pieces = plan_.pieces.size();
  if (method_.report_error()) {
    report.error = strategy_ == Strategy::kOneRequest ? single : sums.Finish();
  }
  return report;
}

absl::StatusOr<QuantizeJob::Answer> QuantizeJob::RunPiece(const Box& box, const std::string& x,
                                                          const Scan& scan,
                                                          const RangeScales& known,
                                                          float largest) const {
  const auto cut = [&](const ScaleTensor& whole) {
    if (whole.type == DataType::kUnspecified) return whole;
    return ScaleTensor{whole.type, CutScales(whole, form_.grid, box)};
  };
  if (method_.given) {
    return RunGiven(box, x, *method_.given, cut(known.scale), cut(known.zero_point));
  }
  if (strategy_ == Strategy::kTwoLevel) return RunTwoLevel(box, x, scan, largest);
  if (strategy_ != Strategy::kRangesFirst) return RunDynamic(box, x);
  const ScaleTensor scale = cut(known.scale);
  const int64_t blocks = Product(form_.grid.BlocksOf(box).size);
  absl::StatusOr<Answer> answer =
      RunKnownScales(box, x, ToFloatScales(scale, blocks, 1), cut(known.zero_point));
  if (answer.ok()) answer->scale = scale;
  return answer;
}

}  // namespace quantd::cli
