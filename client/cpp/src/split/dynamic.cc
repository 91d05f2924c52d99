// DynamicQuantize in pieces of whole blocks.
//
// Why the bits are the same: scale and zero point of a block depend only on the range of its
// elements and the options, and y[i] on these and x[i]. A box between blocks, sent with the
// block_shape of the whole, has the same blocks. Where this is impossible (a block larger than a
// message; NVFP4, whose tensor scale depends on all elements), large_blocks.cc is used.
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "messages.h"
#include "pieces.h"
#include "status_macros.h"
#include "sums.h"

namespace quantd::client::split {
namespace {

v1::DataType ScaleType(const DynamicQuantizeOptions& options) {
  return options.scale_type == v1::DATA_TYPE_UNSPECIFIED ? v1::DATA_TYPE_FLOAT : options.scale_type;
}

bool IsTwoLevel(const DynamicQuantizeOptions& options) {
  return options.scale_type == v1::DATA_TYPE_FLOAT8E4M3FN &&
         options.output_type == v1::DATA_TYPE_FLOAT4E2M1;
}

PieceCost CostOf(const Tensor& x, const DynamicQuantizeOptions& options) {
  const int y_bits = BitsOf(OutputType(options.output_type, std::nullopt));
  return {BitsOf(x.data_type), 0, y_bits, BitsOf(ScaleType(options)) + y_bits};
}

// The error for the first non-finite element, in the words of a server with all of x. Errors in the
// options take precedence: the server is asked about them with a 0 for x.
absl::Status CheckFinite(const Sender& sender, const Tensor& x, int64_t elements, const Grid& grid,
                         const DynamicQuantizeOptions& options) {
  const int64_t index = ScanElements(x.data_type, x.data, 0, elements).first_non_finite;
  if (index < 0) return absl::OkStatus();
  const Box one{std::vector<int64_t>(x.shape.size(), 0), std::vector<int64_t>(x.shape.size(), 1)};
  v1::DynamicQuantizeRequest request = RequestOf(options);
  SetMessage(x.data_type, one.size,
             std::string(static_cast<size_t>(BytesOf(1, BitsOf(x.data_type))), '\0'),
             request.mutable_x());
  SetBlockShape(grid.PieceBlockShape(one), &request);
  const absl::Status status = sender.dynamic_quantize(request).status();
  if (absl::IsInvalidArgument(status)) return status;
  return FieldError("x", absl::StrCat("x[", index, "] is ", ValueAt(x.data_type, x.data, index),
                                      ", DynamicQuantize takes finite values unless non_finite is "
                                      "IGNORE"));
}

absl::Status QuantizeBoxes(const Sender& sender, const Tensor& x, const Grid& grid,
                           const std::vector<Box>& boxes, const DynamicQuantizeOptions& options,
                           Quantized& result) {
  const v1::DataType output = result.y.data_type, scale_type = result.scale.data_type;
  std::mutex mutex;
  Sums sums;  // guarded by mutex, like result
  const absl::Status status = RunPieces(boxes.size(), [&](size_t index) {
    const Box& box = boxes[index];
    const Box blocks = grid.BlocksOf(box);
    const int64_t elements = Product(box.size), scales = Product(blocks.size);
    v1::DynamicQuantizeRequest request = RequestOf(options);
    SetMessage(x.data_type, box.size, GatherBox(x.data, BitsOf(x.data_type), x.shape, box),
               request.mutable_x());
    SetBlockShape(grid.PieceBlockShape(box), &request);
    const absl::StatusOr<v1::DynamicQuantizeResponse> response = sender.dynamic_quantize(request);
    if (!response.ok()) return OfPiece(response.status(), grid, box);
    QUANTD_RETURN_IF_ERROR(CheckResponse(response->y(), "y", output, elements));
    QUANTD_RETURN_IF_ERROR(CheckResponse(response->y_scale(), "y_scale", scale_type, scales));
    if (response->has_y_zero_point()) {
      QUANTD_RETURN_IF_ERROR(
          CheckResponse(response->y_zero_point(), "y_zero_point", output, scales));
    }
    Scan scan;
    if (options.report_error) {
      scan = ScanElements(x.data_type, request.x().raw_data(), 0, elements);
    }
    const std::lock_guard<std::mutex> lock(mutex);
    if (options.report_error) sums.Add(response->quantization_error(), scan.signal, scan.finite);
    const int bits = BitsOf(output);
    ScatterBox(response->y().raw_data(), bits, x.shape, box, result.y.data);
    ScatterBox(response->y_scale().raw_data(), BitsOf(scale_type), grid.counts, blocks,
               result.scale.data);
    if (response->has_y_zero_point()) {
      if (!result.zero_point.has_value()) {
        result.zero_point = {output, grid.scale_shape,
                             std::string(static_cast<size_t>(BytesOf(grid.scales, bits)), '\0')};
      }
      ScatterBox(response->y_zero_point().raw_data(), bits, grid.counts, blocks,
                 result.zero_point->data);
    }
    return absl::OkStatus();
  });
  if (status.ok() && options.report_error) result.error = sums.Finish();
  return status;
}

}  // namespace

MessageSizes SizesOf(const Tensor& x, const DynamicQuantizeOptions& options) {
  const absl::StatusOr<int64_t> elements = CheckTensor(x, "x");
  if (!elements.ok()) return {x.data.size() + kEnvelopeBytes, 0};
  const absl::StatusOr<Grid> grid = DynamicGrid(x.shape, options.granularity);
  return CostOf(x, options).Of(*elements, grid.ok() ? grid->scales : 0);
}

absl::StatusOr<Quantized> DynamicQuantize(const Sender& sender, const Tensor& x,
                                          const DynamicQuantizeOptions& options) {
  if (!IsInputType(x.data_type)) {
    return FieldError("x", absl::StrCat("x is ", v1::DataType_Name(x.data_type),
                                        ", DynamicQuantize takes FLOAT, FLOAT16, BFLOAT16, INT32"));
  }
  QUANTD_ASSIGN_OR_RETURN(const int64_t elements, CheckTensor(x, "x"));
  QUANTD_ASSIGN_OR_RETURN(const Grid grid, DynamicGrid(x.shape, options.granularity));
  const v1::DataType output = OutputType(options.output_type, std::nullopt);
  const int bits = BitsOf(output), scale_bits = BitsOf(ScaleType(options));
  if (bits == 0) return FieldError("output_type", absl::StrCat("output_type is ", output));
  if (scale_bits == 0) {
    return FieldError("scale_type", absl::StrCat("scale_type is ", options.scale_type));
  }
  if (options.non_finite != v1::NON_FINITE_IGNORE) {
    QUANTD_RETURN_IF_ERROR(CheckFinite(sender, x, elements, grid, options));
  }
  Quantized result;
  result.y = {output, x.shape, std::string(static_cast<size_t>(BytesOf(elements, bits)), '\0')};
  result.scale = {ScaleType(options), grid.scale_shape,
                  std::string(static_cast<size_t>(BytesOf(grid.scales, scale_bits)), '\0')};
  std::optional<std::vector<Box>> boxes;
  if (!IsTwoLevel(options)) {
    const PieceCost cost = CostOf(x, options);
    boxes = CutIntoBoxes(grid, Cut::kBetweenBlocks, [&](int64_t box_elements, int64_t blocks) {
      return cost.Of(box_elements, blocks).Fit(sender.limits);
    });
  }
  QUANTD_RETURN_IF_ERROR(boxes.has_value() ? QuantizeBoxes(sender, x, grid, *boxes, options, result)
                                           : QuantizeLargeBlocks(sender, x, grid, options,
                                                                 IsTwoLevel(options), result));
  return result;
}

}  // namespace quantd::client::split
