// DynamicQuantize if a block is larger than a message, or the tensor has a second scale: first
// ranges, then scales, then Quantize.
//
// Why the bits are the same: a scale and its zero point depend only on the range of their block,
// which is the smallest and the largest finite value and zero, in FLOAT. So a DynamicQuantize of a
// tensor with a row [smallest, largest] for each block computes exactly the same scales. NVFP4's
// second scale depends on the range of the whole tensor, which is in one more row. Then elements
// can be sent in any pieces, with their scales: DynamicQuantize divides in FLOAT whatever the type
// of its scales, and so does Quantize if they are sent as FLOAT, which represents every type of
// scale. It differs from DynamicQuantize only in the smallest INT8, which is corrected here.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "messages.h"
#include "pieces.h"
#include "status_macros.h"
#include "sums.h"

namespace quantd::client::split {
namespace {

struct Range {
  float smallest = 0;
  float largest = 0;
};

std::vector<Range> RangesOf(const Tensor& x, const Grid& grid) {
  std::vector<Range> ranges(static_cast<size_t>(grid.scales));
  grid.ForEachRun([&](int64_t block, int64_t begin, int64_t count) {
    Range& range = ranges[static_cast<size_t>(block)];
    WidenRange(x.data_type, x.data, begin, count, range.smallest, range.largest);
  });
  return ranges;
}

class Scales {
 public:
  Scales(const Sender& sender, const Grid& grid, const DynamicQuantizeOptions& options,
         bool two_level, Quantized& result)
      : sender_(sender), grid_(grid), two_level_(two_level), result_(result) {
    request_ = RequestOf(options);
    request_.clear_report_error();
    request_.clear_block_size();
    request_.clear_block_shape();
    request_.set_axis(0);
  }

  // Fills scale, zero point and tensor scale of the result.
  absl::Status Find(const std::vector<Range>& ranges) {
    Range all;
    for (const Range& range : ranges) {
      all.smallest = std::min(all.smallest, range.smallest);
      all.largest = std::max(all.largest, range.largest);
    }
    // A row and its response: 8 bytes, and at most a scale, a zero point and two codes of 2 bytes.
    const uint64_t room = std::min(sender_.limits.message_bytes, sender_.limits.budget_bytes / 2);
    const uint64_t most = room > kEnvelopeBytes ? (room - kEnvelopeBytes) / 16 : 0;
    if (most < 2) return TooLarge(grid_, sender_.limits);
    const size_t step = static_cast<size_t>(std::min<uint64_t>(most - 1, ranges.size()));
    return RunPieces((ranges.size() + step - 1) / step, [&](size_t index) {
      const size_t begin = index * step, end = std::min(begin + step, ranges.size());
      std::vector<Range> rows(ranges.begin() + static_cast<std::ptrdiff_t>(begin),
                              ranges.begin() + static_cast<std::ptrdiff_t>(end));
      if (two_level_) rows.push_back(all);
      return Ask(rows, static_cast<int64_t>(begin), static_cast<int64_t>(end - begin));
    });
  }

 private:
  // Asks for the scales of `count` blocks from `begin` on, whose ranges are the first rows.
  absl::Status Ask(const std::vector<Range>& rows, int64_t begin, int64_t count) {
    v1::DynamicQuantizeRequest request = request_;
    const auto sent = static_cast<int64_t>(rows.size());
    SetMessage(v1::DATA_TYPE_FLOAT, {sent, 2},
               std::string(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(Range)),
               request.mutable_x());
    const absl::StatusOr<v1::DynamicQuantizeResponse> response = sender_.dynamic_quantize(request);
    if (!response.ok()) return OfPiece(response.status(), grid_, grid_.BlockAt(begin));
    const v1::DataType type = result_.y.data_type;
    QUANTD_RETURN_IF_ERROR(
        CheckResponse(response->y_scale(), "y_scale", result_.scale.data_type, sent));
    if (response->has_y_zero_point()) {
      QUANTD_RETURN_IF_ERROR(CheckResponse(response->y_zero_point(), "y_zero_point", type, sent));
    }
    if (two_level_) {
      QUANTD_RETURN_IF_ERROR(
          CheckResponse(response->y_tensor_scale(), "y_tensor_scale", v1::DATA_TYPE_FLOAT, 1));
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    CopyElements(response->y_scale().raw_data(), 0, result_.scale.data, begin, count,
                 BitsOf(result_.scale.data_type));
    if (response->has_y_zero_point()) {
      if (!result_.zero_point.has_value()) {
        const int64_t bytes = BytesOf(grid_.scales, BitsOf(type));
        result_.zero_point = {type, grid_.scale_shape,
                              std::string(static_cast<size_t>(bytes), '\0')};
      }
      CopyElements(response->y_zero_point().raw_data(), 0, result_.zero_point->data, begin, count,
                   BitsOf(type));
    }
    if (two_level_) result_.tensor_scale = TakeTensor(v1::Tensor(response->y_tensor_scale()));
    return absl::OkStatus();
  }

  const Sender& sender_;
  const Grid& grid_;
  const bool two_level_;
  v1::DynamicQuantizeRequest request_;
  std::mutex mutex_;
  Quantized& result_;  // guarded by mutex_
};

// The scales as DynamicQuantize divides by them.
std::vector<float> FloatScales(const Quantized& result, int64_t scales) {
  const float second = result.tensor_scale.has_value()
                           ? ValueAt(v1::DATA_TYPE_FLOAT, result.tensor_scale->data, 0)
                           : 1.0f;
  std::vector<float> values(static_cast<size_t>(scales));
  for (int64_t i = 0; i < scales; ++i) {
    values[static_cast<size_t>(i)] = ValueAt(result.scale.data_type, result.scale.data, i) * second;
  }
  return values;
}

// INT8 is [-128, 127] in Quantize and [-127, 127] in DynamicQuantize: replaces every -128 of y by
// -127, and updates the error report accordingly.
void RaiseSmallestInt8(const Tensor& x, const Grid& grid, const std::vector<float>& scales,
                       Quantized& result) {
  const auto zero_of = [&](size_t block) {
    const bool has_zero = result.zero_point.has_value();
    return has_zero ? static_cast<float>(static_cast<int8_t>(result.zero_point->data[block])) : 0;
  };
  const auto error_of = [&](int64_t i, size_t block, double code) {
    const double exact = ExactValueAt(x.data_type, x.data, i);
    return exact - (code - double{zero_of(block)}) * double{scales[block]};
  };
  double added = 0;
  uint64_t saturated = 0;
  bool any = false;
  grid.ForEachRun([&](int64_t block, int64_t begin, int64_t count) {
    for (int64_t i = begin; i < begin + count; ++i) {
      char& code = result.y.data[static_cast<size_t>(i)];
      if (code != static_cast<char>(-128)) continue;
      code = static_cast<char>(-127);
      any = true;
      if (!result.error.has_value()) continue;
      const auto b = static_cast<size_t>(block);
      const float value = ValueAt(x.data_type, x.data, i);
      // Values below both ranges are counted already.
      if (std::nearbyint(value / scales[b]) + zero_of(b) == -128) ++saturated;
      if (!std::isfinite(value)) continue;
      const double before = error_of(i, b, -128), after = error_of(i, b, -127);
      added += after * after - before * before;
    }
  });
  if (!any || !result.error.has_value()) return;
  const Scan scan = ScanElements(x.data_type, x.data, 0, Product(x.shape));
  v1::QuantizationError report = *result.error;
  report.set_saturated_elements(report.saturated_elements() + saturated);
  Sums sums;
  sums.Add(report, scan.signal, scan.finite);
  sums.noise += added;
  // The largest error may have been that of a -128.
  double& largest = sums.max_absolute_error = 0;
  grid.ForEachRun([&](int64_t block, int64_t begin, int64_t count) {
    for (int64_t i = begin; i < begin + count && !std::isnan(largest); ++i) {
      if (!std::isfinite(ValueAt(x.data_type, x.data, i))) continue;
      const auto code = static_cast<int8_t>(result.y.data[static_cast<size_t>(i)]);
      const double error = std::fabs(error_of(i, static_cast<size_t>(block), code));
      if (!(error <= largest)) largest = error;
    }
  });
  result.error = sums.Finish();
}

}  // namespace

absl::Status QuantizeLargeBlocks(const Sender& sender, const Tensor& x, const Grid& grid,
                                 const DynamicQuantizeOptions& options, bool two_level,
                                 Quantized& result) {
  QUANTD_RETURN_IF_ERROR(Scales(sender, grid, options, two_level, result).Find(RangesOf(x, grid)));
  const v1::DataType type = result.scale.data_type;
  if (!IsInputType(type) && type != v1::DATA_TYPE_FLOAT8E8M0 &&
      type != v1::DATA_TYPE_FLOAT8E4M3FN) {
    return absl::InternalError(absl::StrCat("the server's y_scale is ", v1::DataType_Name(type),
                                            ", which this client cannot read"));
  }
  const std::vector<float> scales = FloatScales(result, grid.scales);
  QuantizeOptions known;
  known.output_type = result.y.data_type;
  known.granularity = options.granularity;
  known.saturate = options.saturate;
  known.report_error = options.report_error;
  QUANTD_ASSIGN_OR_RETURN(
      Quantized quantized,
      Quantize(sender, x, Tensor::Of<float>(scales, grid.scale_shape), result.zero_point, known));
  result.y = std::move(quantized.y);
  result.error = quantized.error;
  if (result.y.data_type == v1::DATA_TYPE_INT8) RaiseSmallestInt8(x, grid, scales, result);
  return absl::OkStatus();
}

}  // namespace quantd::client::split
