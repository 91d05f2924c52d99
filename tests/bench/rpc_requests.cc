// See rpc_requests.h.
#include "rpc_requests.h"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "quantd/v1/quantization.pb.h"

namespace quantd::bench {
namespace {

v1::Tensor Values(size_t bytes) {
  std::vector<float> values(bytes / sizeof(float));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  v1::Tensor x;
  x.set_data_type(v1::DATA_TYPE_FLOAT);
  x.add_shape(static_cast<int64_t>(values.size()));
  x.set_raw_data(values.data(), bytes);
  return x;
}

v1::Tensor Scale() {
  const float scale = 1.0f / 64;
  v1::Tensor tensor;
  tensor.set_data_type(v1::DATA_TYPE_FLOAT);
  tensor.set_raw_data(&scale, sizeof(scale));
  return tensor;
}

}  // namespace

std::string Config::Name() const {
  return absl::StrCat(operation, " ", unix_socket ? "unix" : "tcp", " ", bytes, " ", in_flight,
                      window > 1 ? absl::StrCat(" ", window) : "");
}

std::string Method(const std::string& name) {
  return absl::StrCat("/quantd.v1.QuantizationService/", name);
}

std::string Request(const Config& config) {
  if (config.operation == "Quantize") {
    v1::QuantizeRequest request;
    *request.mutable_x() = Values(config.bytes);
    *request.mutable_scale() = Scale();
    request.set_report_error(config.report_error);
    return request.SerializeAsString();
  }
  if (config.operation == "Dequantize") {
    v1::DequantizeRequest request;
    request.mutable_x()->set_data_type(v1::DATA_TYPE_UINT8);
    request.mutable_x()->add_shape(static_cast<int64_t>(config.bytes));
    request.mutable_x()->set_raw_data(std::string(config.bytes, 'q'));
    *request.mutable_scale() = Scale();
    return request.SerializeAsString();
  }
  v1::DynamicQuantizeRequest request;
  *request.mutable_x() = Values(config.bytes);
  if (config.operation == "DynamicQuantize") return request.SerializeAsString();
  v1::StreamRequest item;
  item.set_id(1);
  *item.mutable_dynamic_quantize() = std::move(request);
  return item.SerializeAsString();
}

std::string SizeText(size_t bytes) {
  if (bytes >= 1 << 20) return absl::StrCat(bytes >> 20, " MiB");
  if (bytes >= 1 << 10) return absl::StrCat(bytes >> 10, " KiB");
  return absl::StrCat(bytes, " B");
}

}  // namespace quantd::bench
