// Quantize and Dequantize in pieces.
//
// Why the bits are the same: y[i] depends on x[i], the scale and zero point of its block, and the
// options. A piece is a box whose elements are sent with the scales of the blocks that it touches,
// with the same types and values as in the whole, and block_shape assigns them in the same way. So
// every element has the same scale. Types that an unset field implies depend on those of the scale
// and the zero point, which are sent unchanged.
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "messages.h"
#include "pieces.h"
#include "status_macros.h"
#include "sums.h"

namespace quantd::client::split {
namespace {

v1::DataType DequantizedType(const Tensor& scale, const DequantizeOptions& options) {
  return options.output_type == v1::DATA_TYPE_UNSPECIFIED ? scale.data_type : options.output_type;
}

// Common to both requests: x, and the scales that its piece needs.
template <typename Request>
void SetPiece(const Tensor& x, const Tensor& scale, const std::optional<Tensor>& zero_point,
              const Grid& grid, const Box& box, Request* request) {
  SetMessage(x.data_type, box.size, GatherBox(x.data, BitsOf(x.data_type), x.shape, box),
             request->mutable_x());
  const Box blocks = grid.BlocksOf(box);
  const bool one = grid.scale_shape.empty();
  const auto set = [&](const Tensor& whole, v1::Tensor* to) {
    SetMessage(whole.data_type, one ? Dimensions() : blocks.size,
               GatherBox(whole.data, BitsOf(whole.data_type), grid.counts, blocks), to);
  };
  set(scale, request->mutable_scale());
  if (zero_point.has_value()) set(*zero_point, request->mutable_zero_point());
  SetBlockShape(one ? Dimensions() : grid.PieceBlockShape(box), request);
}

struct Plan {
  Grid grid;
  std::vector<Box> boxes;
};

absl::StatusOr<Plan> PlanOf(const Sender& sender, const Tensor& x, const Tensor& scale,
                            const std::optional<Tensor>& zero_point, const Granularity& granularity,
                            v1::DataType output) {
  QUANTD_RETURN_IF_ERROR(CheckTensor(x, "x").status());
  QUANTD_ASSIGN_OR_RETURN(const int64_t scales, CheckTensor(scale, "scale"));
  int block_bits = BitsOf(scale.data_type);
  if (zero_point.has_value()) {
    QUANTD_ASSIGN_OR_RETURN(const int64_t zero_points, CheckTensor(*zero_point, "zero_point"));
    if (zero_points != scales) {
      return FieldError("zero_point", absl::StrCat("zero_point has ", zero_points,
                                                   " elements, scale has ", scales));
    }
    const bool one = scales == 1 && zero_point->shape.size() <= 1 && scale.shape.size() <= 1;
    if (!one && zero_point->shape != scale.shape) {
      return FieldError(
          "zero_point",
          absl::StrCat("zero_point has the shape [", absl::StrJoin(zero_point->shape, ", "),
                       "], scale has [", absl::StrJoin(scale.shape, ", "), "]"));
    }
    block_bits += BitsOf(zero_point->data_type);
  }
  QUANTD_ASSIGN_OR_RETURN(Grid grid, ScaleGrid(x.shape, scale.shape, granularity));
  const PieceCost cost{BitsOf(x.data_type), block_bits, BitsOf(output), 0};
  std::optional<std::vector<Box>> boxes =
      CutIntoBoxes(grid, Cut::kAnywhere, [&](int64_t box_elements, int64_t blocks) {
        return cost.Of(box_elements, blocks).Fit(sender.limits);
      });
  if (!boxes.has_value()) return TooLarge(grid, sender.limits);
  return Plan{std::move(grid), *std::move(boxes)};
}

MessageSizes SizesOf(const Tensor& x, const Tensor& scale, const std::optional<Tensor>& zero_point,
                     v1::DataType output) {
  const int bits = BitsOf(x.data_type);
  const uint64_t elements = bits == 0 ? 0 : x.data.size() * 8 / static_cast<uint64_t>(bits);
  return {x.data.size() + scale.data.size() + (zero_point ? zero_point->data.size() : 0) +
              kEnvelopeBytes,
          elements * static_cast<uint64_t>(BitsOf(output)) / 8 + kEnvelopeBytes};
}

}  // namespace

MessageSizes SizesOf(const Tensor& x, const Tensor& scale, const std::optional<Tensor>& zero_point,
                     const QuantizeOptions& options) {
  return SizesOf(x, scale, zero_point, OutputType(options.output_type, zero_point));
}

MessageSizes SizesOf(const Tensor& x, const Tensor& scale, const std::optional<Tensor>& zero_point,
                     const DequantizeOptions& options) {
  return SizesOf(x, scale, zero_point, DequantizedType(scale, options));
}

absl::StatusOr<Quantized> Quantize(const Sender& sender, const Tensor& x, const Tensor& scale,
                                   const std::optional<Tensor>& zero_point,
                                   const QuantizeOptions& options) {
  if (!IsInputType(x.data_type)) {
    return FieldError("x", absl::StrCat("x is ", v1::DataType_Name(x.data_type),
                                        ", Quantize takes FLOAT, FLOAT16, BFLOAT16, INT32"));
  }
  const v1::DataType output = OutputType(options.output_type, zero_point);
  QUANTD_ASSIGN_OR_RETURN(const Plan plan,
                          PlanOf(sender, x, scale, zero_point, options.granularity, output));
  const int bits = BitsOf(output);
  if (bits == 0) return FieldError("output_type", absl::StrCat("output_type is ", output));
  Quantized result;
  result.y = {output, x.shape,
              std::string(static_cast<size_t>(BytesOf(Product(x.shape), bits)), '\0')};
  std::mutex mutex;
  Sums sums;  // guarded by mutex, like y
  absl::Status status = RunPieces(plan.boxes.size(), [&](size_t index) {
    const Box& box = plan.boxes[index];
    v1::QuantizeRequest request = RequestOf(options);
    SetPiece(x, scale, zero_point, plan.grid, box, &request);
    const int64_t elements = Product(box.size);
    const absl::StatusOr<v1::QuantizeResponse> response = sender.quantize(request);
    if (!response.ok()) return OfPiece(response.status(), plan.grid, box);
    QUANTD_RETURN_IF_ERROR(CheckResponse(response->y(), "y", output, elements));
    Scan scan;
    if (options.report_error) {
      scan = ScanElements(x.data_type, request.x().raw_data(), 0, elements);
    }
    const std::lock_guard<std::mutex> lock(mutex);
    if (options.report_error) sums.Add(response->quantization_error(), scan.signal, scan.finite);
    ScatterBox(response->y().raw_data(), bits, x.shape, box, result.y.data);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (options.report_error) result.error = sums.Finish();
  return result;
}

absl::StatusOr<Tensor> Dequantize(const Sender& sender, const Tensor& x, const Tensor& scale,
                                  const std::optional<Tensor>& zero_point,
                                  const DequantizeOptions& options) {
  const v1::DataType output = DequantizedType(scale, options);
  QUANTD_ASSIGN_OR_RETURN(const Plan plan,
                          PlanOf(sender, x, scale, zero_point, options.granularity, output));
  const int bits = BitsOf(output);
  Tensor result{output, x.shape,
                std::string(static_cast<size_t>(BytesOf(Product(x.shape), bits)), '\0')};
  absl::Status status = RunPieces(plan.boxes.size(), [&](size_t index) {
    const Box& box = plan.boxes[index];
    v1::DequantizeRequest request = RequestOf(options);
    SetPiece(x, scale, zero_point, plan.grid, box, &request);
    const absl::StatusOr<v1::DequantizeResponse> response = sender.dequantize(request);
    if (!response.ok()) return OfPiece(response.status(), plan.grid, box);
    absl::Status right = CheckResponse(response->y(), "y", output, Product(box.size));
    // The elements of y are whole bytes, so pieces share none.
    if (right.ok()) ScatterBox(response->y().raw_data(), bits, x.shape, box, result.data);
    return right;
  });
  if (!status.ok()) return status;
  return result;
}

}  // namespace quantd::client::split
