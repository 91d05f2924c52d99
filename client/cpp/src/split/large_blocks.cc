// DynamicQuantize where a block is larger than a message, or where the tensor has a second scale.
//
// A request here has rows, and each row is a block (block_shape [1, -1]):
//   - a whole block, filled up with zeros to the longest one;
//   - or a part of one, and behind it two elements: the block's smallest and its largest;
//   - and of NVFP4 one more row, whose only element beside zeros is the tensor's largest in
//     magnitude.
// Why the bits are the same: a range holds 0 and the extremes of its block, so that neither zeros
// nor extremes that are in the block anyway change it; a part with them has the range of the whole
// block. So scale and zero point, which follow from range and options, are those of the whole, and
// likewise NVFP4's tensor scale, which follows from the largest magnitude. y[i] follows from x[i]
// and these.
//
// In an error report the extremes count in every part: what they add is found once, by a request
// that holds nothing else, and taken off. Zeros add nothing: they come back as 0. The largest error
// is not touched, as the extremes are elements of x.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "messages.h"
#include "pieces.h"
#include "sums.h"

namespace quantd::client::split {
namespace {

// Elements of a part are a multiple of this, so that packed parts meet at whole bytes.
constexpr int64_t kStep = 8;

class LargeBlocks {
 public:
  LargeBlocks(const Sender& sender, const Tensor& x, const Grid& grid,
              const DynamicQuantizeOptions& options, bool two_level, Quantized& result)
      : sender_(sender),
        x_(x),
        grid_(grid),
        options_(options),
        two_level_(two_level),
        x_bytes_(BitsOf(x.data_type) / 8),
        y_bits_(BitsOf(result.y.data_type)),
        result_(result) {}

  absl::Status Run() {
    if (two_level_) {
      const Scan scan = ScanElements(x_.data_type, x_.data, 0, Product(x_.shape));
      const bool low = -scan.minimum > scan.maximum;
      tail_ = ElementAt(x_.data, low ? scan.smallest : scan.largest);
    }
    const int64_t longest = Product(grid_.block);
    const int64_t rows =
        two_level_ ? Most(grid_.scales, [&](int64_t count) { return Fits(count + 1, longest); })
                   : 0;
    absl::Status status = rows > 0 ? WholeBlocks(rows, longest) : absl::OkStatus();
    for (int64_t block = 0; rows == 0 && status.ok() && block < grid_.scales; ++block) {
      status = Parts(block);
    }
    if (status.ok() && options_.report_error) result_.error = sums_.Finish();
    return status;
  }

 private:
  // A row of a request: `count` elements of x, which belong to `block`.
  struct Row {
    int64_t block;
    int64_t count;
    std::string bytes;  // of a whole row, extremes and zeros included
  };

  // One element, or a zero for the index -1.
  std::string ElementAt(const std::string& data, int64_t index) const {
    const auto size = static_cast<size_t>(x_bytes_);
    return index < 0 ? std::string(size, '\0')
                     : data.substr(static_cast<size_t>(index) * size, size);
  }

  bool Fits(int64_t rows, int64_t length) const {
    const PieceCost cost{x_bytes_ * 8, 0, y_bits_, BitsOf(result_.scale.data_type) + y_bits_};
    int64_t elements;
    return !__builtin_mul_overflow(rows, length, &elements) &&
           cost.Of(elements, rows).Fit(sender_.limits);
  }

  // The largest count up to `limit` for which fits(count), which a smaller one does, too; 0: none.
  template <typename Condition>
  static int64_t Most(int64_t limit, Condition fits) {
    int64_t good = 0, bad = limit + 1;
    while (bad - good > 1) {
      const int64_t middle = good + (bad - good) / 2;
      (fits(middle) ? good : bad) = middle;
    }
    return good;
  }

  absl::StatusOr<v1::DynamicQuantizeResponse> Send(const std::vector<Row>& rows, int64_t length) {
    std::string bytes;
    for (const Row& row : rows) bytes += row.bytes;
    auto count = static_cast<int64_t>(rows.size());
    if (two_level_) {
      bytes += tail_;
      bytes.append(static_cast<size_t>((length - 1) * x_bytes_), '\0');
      ++count;
    }
    v1::DynamicQuantizeRequest request = RequestOf(options_);
    SetMessage(x_.data_type, {count, length}, std::move(bytes), request.mutable_x());
    SetBlockShape({1, -1}, &request);
    absl::StatusOr<v1::DynamicQuantizeResponse> response = sender_.dynamic_quantize(request);
    if (!response.ok()) {
      if (rows.empty()) return response;
      return OfPiece(response.status(), grid_, grid_.BlockAt(rows.front().block));
    }
    absl::Status right = CheckAnswer(response->y(), "y", result_.y.data_type, count * length);
    if (right.ok()) {
      right = CheckAnswer(response->y_scale(), "y_scale", result_.scale.data_type, count);
    }
    if (right.ok() && response->has_y_zero_point()) {
      right = CheckAnswer(response->y_zero_point(), "y_zero_point", result_.y.data_type, count);
    }
    if (right.ok() && two_level_) {
      right = CheckAnswer(response->y_tensor_scale(), "y_tensor_scale", v1::DATA_TYPE_FLOAT, 1);
    }
    if (!right.ok()) return right;
    return response;
  }

  // Takes the scales of the rows' blocks out of an answer. REQUIRES: mutex_ is held.
  void TakeScales(const std::vector<Row>& rows, v1::DynamicQuantizeResponse& response) {
    if (response.has_y_zero_point() && !result_.zero_point.has_value()) {
      result_.zero_point = {result_.y.data_type, grid_.scale_shape,
                            std::string(static_cast<size_t>(BytesOf(grid_.scales, y_bits_)), '\0')};
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      CopyElements(response.y_scale().raw_data(), row, result_.scale.data, rows[i].block, 1,
                   BitsOf(result_.scale.data_type));
      if (!response.has_y_zero_point()) continue;
      CopyElements(response.y_zero_point().raw_data(), row, result_.zero_point->data, rows[i].block,
                   1, y_bits_);
    }
    if (response.has_y_tensor_scale()) {
      result_.tensor_scale = TakeTensor(v1::Tensor(response.y_tensor_scale()));
    }
  }

  // What extremes and the last row add to each report.
  absl::StatusOr<Sums> AddedBy(const std::vector<Row>& rows, int64_t length) {
    Sums sums;
    if (!options_.report_error || (rows.empty() && !two_level_)) return sums;
    const absl::StatusOr<v1::DynamicQuantizeResponse> response = Send(rows, length);
    if (!response.ok()) return response.status();
    const int64_t finite = (static_cast<int64_t>(rows.size()) + (two_level_ ? 1 : 0)) * length;
    sums.Add(response->quantization_error(), 0, finite);
    return sums;
  }

  // REQUIRES: mutex_ is held.
  void AddReport(const std::vector<Row>& rows, int64_t length, const v1::QuantizationError& report,
                 const Sums& added) {
    if (!options_.report_error) return;
    double signal = 0;
    int64_t finite = 0, others = two_level_ ? length : 0;
    for (const Row& row : rows) {
      const Scan scan = ScanElements(x_.data_type, row.bytes, 0, row.count);
      signal += scan.signal;
      finite += scan.finite;
      others += length - row.count;
    }
    Sums piece;
    piece.Add(report, signal, finite + others);
    if (std::isfinite(added.noise)) piece.noise = std::max(0.0, piece.noise - added.noise);
    piece.finite = finite;
    piece.saturated -= std::min(piece.saturated, added.saturated);
    sums_.Add(piece);
  }

  // As many whole blocks as go into a request.
  absl::Status WholeBlocks(int64_t rows_per_request, int64_t length) {
    const absl::StatusOr<Sums> added = AddedBy({}, 1);
    if (!added.ok()) return added.status();
    const int64_t requests = (grid_.scales + rows_per_request - 1) / rows_per_request;
    return RunPieces(static_cast<size_t>(requests), [&](size_t index) {
      std::vector<Row> rows;
      const int64_t first = static_cast<int64_t>(index) * rows_per_request;
      for (int64_t block = first; block < std::min(first + rows_per_request, grid_.scales);
           ++block) {
        const Box box = grid_.BlockAt(block);
        rows.push_back({block, Product(box.size), GatherBox(x_.data, x_bytes_ * 8, x_.shape, box)});
        rows.back().bytes.resize(static_cast<size_t>(length * x_bytes_), '\0');
      }
      absl::StatusOr<v1::DynamicQuantizeResponse> response = Send(rows, length);
      if (!response.ok()) return response.status();
      const std::lock_guard<std::mutex> lock(mutex_);
      TakeScales(rows, *response);
      AddReport(rows, length, response->quantization_error(), *added);
      for (size_t i = 0; i < rows.size(); ++i) {
        std::string y(static_cast<size_t>(BytesOf(rows[i].count, y_bits_)), '\0');
        CopyElements(response->y().raw_data(), static_cast<int64_t>(i) * length, y, 0,
                     rows[i].count, y_bits_);
        ScatterBox(y, y_bits_, x_.shape, grid_.BlockAt(rows[i].block), result_.y.data);
      }
      return absl::OkStatus();
    });
  }

  // One block, in as many parts as it takes.
  absl::Status Parts(int64_t block) {
    const Box box = grid_.BlockAt(block);
    const int64_t elements = Product(box.size);
    const bool all = grid_.scales == 1;
    const std::string gathered = all ? "" : GatherBox(x_.data, x_bytes_ * 8, x_.shape, box);
    const std::string& x = all ? x_.data : gathered;
    const Scan scan = ScanElements(x_.data_type, x, 0, elements);
    const std::string extremes = ElementAt(x, scan.smallest) + ElementAt(x, scan.largest);
    const int64_t most =
        Most(elements, [&](int64_t count) { return Fits(two_level_ ? 2 : 1, count + 2); });
    const int64_t part = most / kStep * kStep;
    if (part == 0) return TooLarge(grid_, sender_.limits);
    const absl::StatusOr<Sums> added = AddedBy({{block, 0, extremes}}, 2);
    if (!added.ok()) return added.status();
    std::string y_of_block(all ? 0 : static_cast<size_t>(BytesOf(elements, y_bits_)), '\0');
    std::string& y = all ? result_.y.data : y_of_block;
    const absl::Status status =
        RunPieces(static_cast<size_t>((elements + part - 1) / part), [&](size_t index) {
          const int64_t begin = static_cast<int64_t>(index) * part;
          const int64_t count = std::min(part, elements - begin);
          const std::vector<Row> rows = {{block, count,
                                          x.substr(static_cast<size_t>(begin * x_bytes_),
                                                   static_cast<size_t>(count * x_bytes_)) +
                                              extremes}};
          absl::StatusOr<v1::DynamicQuantizeResponse> response = Send(rows, count + 2);
          if (!response.ok()) return response.status();
          const std::lock_guard<std::mutex> lock(mutex_);
          TakeScales(rows, *response);
          AddReport(rows, count + 2, response->quantization_error(), *added);
          CopyElements(response->y().raw_data(), 0, y, begin, count, y_bits_);
          return absl::OkStatus();
        });
    if (status.ok() && !all) ScatterBox(y, y_bits_, x_.shape, box, result_.y.data);
    return status;
  }

  const Sender& sender_;
  const Tensor& x_;
  const Grid& grid_;
  const DynamicQuantizeOptions& options_;
  const bool two_level_;
  const int x_bytes_;
  const int y_bits_;
  std::string tail_;  // two-level: the element of the largest magnitude

  std::mutex mutex_;
  Sums sums_;  // guarded by mutex_, as is result_ while pieces are under way
  Quantized& result_;
};

}  // namespace

absl::Status QuantizeLargeBlocks(const Sender& sender, const Tensor& x, const Grid& grid,
                                 const DynamicQuantizeOptions& options, bool two_level,
                                 Quantized& result) {
  return LargeBlocks(sender, x, grid, options, two_level, result).Run();
}

}  // namespace quantd::client::split
