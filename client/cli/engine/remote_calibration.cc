#include "engine/remote_calibration.h"

#include <utility>
#include <vector>

#include "engine/errors.h"
#include "engine/on_wire.h"
#include "quantd/values.h"

namespace quantd::cli {
namespace {

client::CalibrationOptions WireOptions(const CalibrationOptions& options, bool return_state) {
  client::CalibrationOptions to;
  to.method = OnWire(options.method);
  to.output_type = OnWire(options.output_type);
  to.symmetry = OnWire(options.symmetry);
  to.axis = options.axis;
  to.percentile = options.percentile;
  to.non_finite = OnWire(options.non_finite);
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
        calibration_(client.Calibrate(WireOptions(options, return_state))) {}

  absl::Status Add(const TensorView& x) override {
    return Explained(calibration_.Add(
        OnWire(x.data_type), std::vector<int64_t>(x.shape.begin(), x.shape.end()),
        absl::string_view(reinterpret_cast<const char*>(x.bytes.data()), x.bytes.size())));
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
      if (zero_point.data_type != OnWire(type) ||
          zero_point.data.size() != ByteSize(type, *channels)) {
        return ServerError(absl::InternalError("zero_point of the answer does not fit"), address_);
      }
      const absl::Span<const uint8_t> bytes(
          reinterpret_cast<const uint8_t*>(zero_point.data.data()), zero_point.data.size());
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

  const std::string address_;
  const CalibrationOptions options_;
  client::Calibration calibration_;
};

}  // namespace

std::unique_ptr<CalibrationRun> MakeRemoteCalibration(client::Client& client,
                                                      const std::string& address,
                                                      const CalibrationOptions& options,
                                                      bool return_state) {
  return std::make_unique<RemoteCalibration>(client, address, options, return_state);
}

}  // namespace quantd::cli
