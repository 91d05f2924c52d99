#include "fake_server.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/quantize.h"

namespace quantd::client {
namespace {

bool Never() { return false; }

const Executor& One() {
  static const auto* const executor = new Executor(1);
  return *executor;
}

TensorView ViewOf(const v1::Tensor& tensor) {
  const std::string& bytes = tensor.raw_data();
  return {static_cast<DataType>(tensor.data_type()),
          Shape(tensor.shape().begin(), tensor.shape().end()),
          {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}};
}

template <typename Request>
quantd::Granularity GranularityOf(const Request& request) {
  quantd::Granularity granularity;
  if (request.has_axis()) granularity.axis = request.axis();
  granularity.block_size = request.block_size();
  granularity.block_shape.assign(request.block_shape().begin(), request.block_shape().end());
  return granularity;
}

// Makes room in a response's tensor.
absl::Span<uint8_t> RoomOf(DataType type, const Shape& shape, uint64_t bytes, v1::Tensor* tensor) {
  tensor->set_data_type(static_cast<v1::DataType>(type));
  tensor->mutable_shape()->Add(shape.begin(), shape.end());
  std::string* const data = tensor->mutable_raw_data();
  data->assign(bytes, '\xA5');
  return {reinterpret_cast<uint8_t*>(data->data()), data->size()};
}

void SetReport(const QuantizationError& error, v1::QuantizationError* to) {
  to->set_sqnr_db(error.sqnr_db);
  to->set_mean_squared_error(error.mean_squared_error);
  to->set_max_absolute_error(error.max_absolute_error);
  to->set_saturated_elements(error.saturated_elements);
  to->set_non_finite_elements(error.non_finite_elements);
}

}  // namespace

absl::Status FakeServer::Fits(const google::protobuf::MessageLite& message) const {
  if (message.ByteSizeLong() <= message_bytes_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a message of ", message.ByteSizeLong(),
                                                   " bytes, ", message_bytes_.load(), " allowed"));
}

absl::StatusOr<v1::QuantizeResponse> FakeServer::Quantize(const v1::QuantizeRequest& request) {
  ++calls_;
  if (absl::Status fits = Fits(request); !fits.ok()) return fits;
  QuantizeParameters parameters;
  parameters.x = ViewOf(request.x());
  parameters.scale = ViewOf(request.scale());
  if (request.has_zero_point()) parameters.zero_point = ViewOf(request.zero_point());
  parameters.output_type = static_cast<DataType>(request.output_type());
  parameters.granularity = GranularityOf(request);
  parameters.saturate = !request.has_saturate() || request.saturate();
  parameters.precision = static_cast<DataType>(request.precision());
  if (request.zero_point_order() == v1::ZERO_POINT_ORDER_BEFORE_ROUNDING) {
    parameters.zero_point_order = ZeroPointOrder::kBeforeRounding;
  }
  parameters.report_error = request.report_error();
  const absl::StatusOr<QuantizePlan> plan = PlanQuantize(parameters);
  if (!plan.ok()) return plan.status();
  v1::QuantizeResponse response;
  QuantizationError error;
  absl::Status status = quantd::Quantize(
      *plan, parameters.x.bytes, One(), Never,
      RoomOf(plan->output_type, plan->shape, plan->output_bytes, response.mutable_y()), &error);
  if (request.report_error()) SetReport(error, response.mutable_quantization_error());
  if (status.ok()) status = Fits(response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::DequantizeResponse> FakeServer::Dequantize(
    const v1::DequantizeRequest& request) {
  ++calls_;
  if (absl::Status fits = Fits(request); !fits.ok()) return fits;
  DequantizeParameters parameters;
  parameters.x = ViewOf(request.x());
  parameters.scale = ViewOf(request.scale());
  if (request.has_zero_point()) parameters.zero_point = ViewOf(request.zero_point());
  if (request.has_tensor_scale()) parameters.tensor_scale = ViewOf(request.tensor_scale());
  parameters.output_type = static_cast<DataType>(request.output_type());
  parameters.granularity = GranularityOf(request);
  const absl::StatusOr<DequantizePlan> plan = PlanDequantize(parameters);
  if (!plan.ok()) return plan.status();
  v1::DequantizeResponse response;
  absl::Status status = quantd::Dequantize(
      *plan, parameters.x.bytes, One(), Never,
      RoomOf(plan->output_type, plan->shape, plan->output_bytes, response.mutable_y()));
  if (status.ok()) status = Fits(response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::DynamicQuantizeResponse> FakeServer::DynamicQuantize(
    const v1::DynamicQuantizeRequest& request) {
  ++calls_;
  if (absl::Status fits = Fits(request); !fits.ok()) return fits;
  DynamicQuantizeParameters parameters;
  parameters.x = ViewOf(request.x());
  parameters.output_type = static_cast<DataType>(request.output_type());
  parameters.granularity = GranularityOf(request);
  parameters.saturate = !request.has_saturate() || request.saturate();
  parameters.scale_type = static_cast<DataType>(request.scale_type());
  parameters.symmetry = static_cast<Symmetry>(request.symmetry());
  if (request.non_finite() == v1::NON_FINITE_IGNORE) parameters.non_finite = NonFinite::kIgnore;
  parameters.report_error = request.report_error();
  const absl::StatusOr<DynamicQuantizePlan> plan = PlanDynamicQuantize(parameters);
  if (!plan.ok()) return plan.status();
  v1::DynamicQuantizeResponse response;
  DynamicQuantizeOutput output;
  output.y = RoomOf(plan->output_type, plan->shape, plan->output_bytes, response.mutable_y());
  output.scale =
      RoomOf(plan->scale_type, plan->scale_shape, plan->scale_bytes, response.mutable_y_scale());
  if (plan->has_zero_point) {
    output.zero_point = RoomOf(plan->output_type, plan->scale_shape, plan->zero_point_bytes,
                               response.mutable_y_zero_point());
  }
  if (plan->has_tensor_scale) {
    output.tensor_scale = RoomOf(DataType::kFloat, {}, 4, response.mutable_y_tensor_scale());
  }
  QuantizationError error;
  absl::Status status =
      quantd::DynamicQuantize(*plan, parameters.x.bytes, One(), Never, output, &error);
  if (request.report_error()) SetReport(error, response.mutable_quantization_error());
  if (status.ok()) status = Fits(response);
  if (!status.ok()) return status;
  return response;
}

}  // namespace quantd::client
