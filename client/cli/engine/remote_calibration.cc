// See remote_calibration.h.
#include "engine/remote_calibration.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/errors.h"
#include "quantd/values.h"

namespace quantd::cli {
namespace {

// Rows that do not lie together are put together up to so many bytes.
constexpr uint64_t kTogether = 4 << 20;

client::CalibrationOptions OnWire(const CalibrationOptions& options, bool return_state) {
  client::CalibrationOptions to;
  switch (options.method) {
    case CalibrationMethod::kMinMax:
      to.method = v1::CALIBRATION_METHOD_MIN_MAX;
      break;
    case CalibrationMethod::kPercentile:
      to.method = v1::CALIBRATION_METHOD_PERCENTILE;
      break;
    case CalibrationMethod::kEntropy:
      to.method = v1::CALIBRATION_METHOD_ENTROPY;
      break;
    case CalibrationMethod::kMse:
      to.method = v1::CALIBRATION_METHOD_MSE;
      break;
  }
  to.output_type = static_cast<v1::DataType>(options.output_type);
  to.symmetry = static_cast<v1::Symmetry>(options.symmetry);
  to.axis = options.axis;
  to.percentile = options.percentile;
  to.non_finite =
      options.non_finite == NonFinite::kIgnore ? v1::NON_FINITE_IGNORE : v1::NON_FINITE_REJECT;
  to.return_state = return_state;
  return to;
}

Shape ShapeOf(const client::Tensor& tensor) { return {tensor.shape.begin(), tensor.shape.end()}; }

class RemoteCalibration : public CalibrationRun {
 public:
  RemoteCalibration(client::Client& client, const std::string& address,
                    const CalibrationOptions& options, bool return_state)
      : address_(address),
        options_(options),
        calibration_(client.Calibrate(OnWire(options, return_state))) {}

  absl::Status Add(const TensorView& x) override {
    if (x.bytes.chunk_count() <= 1) return Send(x, 0, 1);
    // Of embeddings with something between them: one chunk a row.
    const int64_t rows = x.shape[0];
    const int64_t axis = options_.axis.value_or(-1);
    const bool by_row = axis == 0 || axis == -static_cast<int64_t>(x.shape.size());
    const uint64_t row_bytes = std::max<uint64_t>(x.bytes.size() / static_cast<uint64_t>(rows), 1);
    const auto most = static_cast<int64_t>(std::max<uint64_t>(kTogether / row_bytes, 1));
    const int64_t step = by_row ? rows : most;
    for (int64_t row = 0; row < rows; row += step) {
      absl::Status sent = Send(x, row, std::min(step, rows - row));
      if (!sent.ok()) return sent;
    }
    return absl::OkStatus();
  }

  absl::Status AddState(absl::string_view state) override {
    return Explained(calibration_.AddState(state));
  }

  absl::StatusOr<Calibrated> Finish() override {
    absl::StatusOr<client::Calibrated> result = calibration_.Finish();
    if (!result.ok()) return ServerError(result.status(), address_);
    Calibrated to;
    Calibration& c = to.calibration;
    c.shape = ShapeOf(result->scale);
    c.range_shape = ShapeOf(result->range);
    const absl::StatusOr<std::vector<float>> scale = result->scale.Values<float>();
    const absl::StatusOr<std::vector<float>> range = result->range.Values<float>();
    const absl::StatusOr<int64_t> channels = ElementCount(c.shape, "scale.shape");
    if (!scale.ok() || !range.ok() || !channels.ok() ||
        static_cast<size_t>(*channels) != scale->size() || range->size() != 2 * scale->size()) {
      return ServerError(absl::InternalError("scale and range of the answer do not fit"), address_);
    }
    c.scale = *scale;
    c.range = *range;
    c.has_zero_point = result->zero_point.has_value();
    if (c.has_zero_point) {
      const client::Tensor& zero_point = *result->zero_point;
      const DataType type = options_.output_type;
      if (static_cast<DataType>(zero_point.data_type) != type ||
          zero_point.data.size() != ByteSize(type, *channels)) {
        return ServerError(absl::InternalError("zero_point of the answer does not fit"), address_);
      }
      const ByteChunks bytes(ByteChunks::Chunk(
          reinterpret_cast<const uint8_t*>(zero_point.data.data()), zero_point.data.size()));
      const std::vector<int64_t> values = UnpackIntegers(type, *channels, bytes);
      c.zero_point.assign(values.begin(), values.end());
    }
    c.elements = result->elements;
    c.non_finite_elements = result->non_finite_elements;
    to.state = std::move(result->state);
    return to;
  }

 private:
  absl::Status Explained(const absl::Status& status) const {
    return status.ok() ? status : ServerError(status, address_);
  }

  // Rows from `row` on, of those that do not lie together; else all.
  absl::Status Send(const TensorView& x, int64_t row, int64_t rows) {
    const auto type = static_cast<v1::DataType>(x.data_type);
    std::vector<int64_t> shape(x.shape.begin(), x.shape.end());
    if (x.bytes.chunk_count() <= 1) {
      absl::string_view bytes;
      if (x.bytes.chunk_count() == 1) {
        const ByteChunks::Chunk chunk = x.bytes.chunk(0);
        bytes = {reinterpret_cast<const char*>(chunk.data()), chunk.size()};
      }
      return Explained(calibration_.Add(type, shape, bytes));
    }
    const uint64_t row_bytes = x.bytes.size() / static_cast<uint64_t>(shape[0]);
    shape[0] = rows;
    together_.resize(static_cast<size_t>(rows) * row_bytes);
    x.bytes.CopyTo(static_cast<size_t>(row) * row_bytes,
                   {reinterpret_cast<uint8_t*>(together_.data()), together_.size()});
    return Explained(calibration_.Add(type, shape, together_));
  }

  const std::string address_;
  const CalibrationOptions options_;
  client::Calibration calibration_;
  std::string together_;
};

}  // namespace

std::unique_ptr<CalibrationRun> MakeRemoteCalibration(client::Client& client,
                                                      const std::string& address,
                                                      const CalibrationOptions& options,
                                                      bool return_state) {
  return std::make_unique<RemoteCalibration>(client, address, options, return_state);
}

}  // namespace quantd::cli
