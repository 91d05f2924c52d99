// Uses quantd::client, one call per tensor.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/on_wire.h"
#include "quantd/client/client.h"

namespace quantd::cli {
namespace {

client::Tensor ToTensor(const TensorView& view) {
  client::Tensor tensor;
  tensor.data_type = OnWire(view.data_type);
  tensor.shape.assign(view.shape.begin(), view.shape.end());
  tensor.data.assign(view.bytes.begin(), view.bytes.end());
  return tensor;
}

std::optional<client::Tensor> ToTensor(const std::optional<TensorView>& view) {
  if (!view.has_value()) return std::nullopt;
  return ToTensor(*view);
}

client::Granularity ToGranularity(const Granularity& granularity) {
  return {granularity.axis,
          granularity.block_size,
          {granularity.block_shape.begin(), granularity.block_shape.end()}};
}

// Returns INTERNAL if a response does not have the required size; responses are not trusted
// otherwise.
absl::Status CopyTo(const client::Tensor& tensor, absl::Span<uint8_t> to) {
  if (tensor.data.size() != to.size()) {
    return absl::InternalError(absl::StrCat("the server answered with ", tensor.data.size(),
                                            " bytes where ", to.size(), " belong"));
  }
  if (!to.empty()) std::memcpy(to.data(), tensor.data.data(), to.size());
  return absl::OkStatus();
}

void SetError(const std::optional<v1::QuantizationError>& from, QuantizationError* to) {
  if (!from.has_value() || to == nullptr) return;
  *to = {from->sqnr_db(), from->mean_squared_error(), from->max_absolute_error(),
         from->saturated_elements(), from->non_finite_elements()};
}

// All of "decode=12,queue=834,kernel=410,encode=3".
int64_t SumOf(absl::string_view timing) {
  int64_t sum = 0, microseconds = 0;
  for (const absl::string_view phase : absl::StrSplit(timing, ',')) {
    if (absl::SimpleAtoi(phase.substr(phase.find('=') + 1), &microseconds)) sum += microseconds;
  }
  return sum;
}

class RemoteEngine : public Engine {
 public:
  RemoteEngine(const std::string& address, const client::ClientOptions& options)
      : address_(address), client_(address, Timed(options)) {}

  absl::Status Quantize(const QuantizeParameters& p, absl::Span<uint8_t> y,
                        QuantizationError* error) override {
    const client::QuantizeOptions options{.output_type = OnWire(p.output_type),
                                          .granularity = ToGranularity(p.granularity),
                                          .saturate = p.saturate,
                                          .precision = OnWire(p.precision),
                                          .zero_point_order = OnWire(p.zero_point_order),
                                          .report_error = p.report_error};
    const auto result =
        client_.Quantize(ToTensor(p.x), ToTensor(p.scale), ToTensor(p.zero_point), options);
    if (!result.ok()) return ServerError(result.status(), address_);
    SetError(result->error, error);
    return CopyTo(result->y, y);
  }

  absl::Status DynamicQuantize(const DynamicQuantizeParameters& p,
                               const DynamicQuantizeOutput& output,
                               QuantizationError* error) override {
    const client::DynamicQuantizeOptions options{.output_type = OnWire(p.output_type),
                                                 .granularity = ToGranularity(p.granularity),
                                                 .saturate = p.saturate,
                                                 .scale_type = OnWire(p.scale_type),
                                                 .symmetry = OnWire(p.symmetry),
                                                 .non_finite = OnWire(p.non_finite),
                                                 .report_error = p.report_error};
    const auto result = client_.DynamicQuantize(ToTensor(p.x), options);
    if (!result.ok()) return ServerError(result.status(), address_);
    SetError(result->error, error);
    absl::Status status = CopyTo(result->y, output.y);
    if (status.ok()) status = CopyTo(result->scale, output.scale);
    if (status.ok())
      status = CopyTo(result->zero_point.value_or(client::Tensor()), output.zero_point);
    if (status.ok())
      status = CopyTo(result->tensor_scale.value_or(client::Tensor()), output.tensor_scale);
    return status;
  }

  absl::Status Dequantize(const DequantizeParameters& p, absl::Span<uint8_t> y) override {
    const client::DequantizeOptions options{.output_type = OnWire(p.output_type),
                                            .granularity = ToGranularity(p.granularity),
                                            .tensor_scale = ToTensor(p.tensor_scale)};
    const auto result =
        client_.Dequantize(ToTensor(p.x), ToTensor(p.scale), ToTensor(p.zero_point), options);
    if (!result.ok()) return ServerError(result.status(), address_);
    return CopyTo(*result, y);
  }

  absl::Status QuantizeEmbeddings(const QuantizeEmbeddingsParameters& p, absl::Span<uint8_t> y,
                                  QuantizationError* error) override {
    const client::EmbeddingOptions options{.recipe = OnWire(p.recipe),
                                           .ranges = ToTensor(p.ranges),
                                           .output_type = OnWire(p.output_type),
                                           .dimensions = p.dimensions,
                                           .normalize = p.normalize,
                                           .bit_order = OnWire(p.bit_order),
                                           .bit_threshold = OnWire(p.bit_threshold),
                                           .signed_bits = OnWire(p.signed_bits),
                                           .non_finite = OnWire(p.non_finite),
                                           .report_error = p.report_error};
    const auto result = client_.QuantizeEmbeddings(ToTensor(p.x), options);
    if (!result.ok()) return ServerError(result.status(), address_);
    SetError(result->error, error);
    return CopyTo(result->y, y);
  }

  double TakeServerSeconds() override {
    return static_cast<double>(server_microseconds_.exchange(0)) / 1e6;
  }

 private:
  client::ClientOptions Timed(client::ClientOptions options) {
    options.on_timing = [this](const std::string& timing) {
      server_microseconds_ += SumOf(timing);
    };
    return options;
  }

  const std::string address_;
  std::atomic<int64_t> server_microseconds_{0};  // pieces of a tensor are computed at a time
  client::Client client_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakeRemoteEngine(const std::string& address,
                                                         const client::ClientOptions& options) {
  const absl::Duration patience = std::min(options.timeout, absl::Seconds(5));
  client::ClientOptions patient = options;
  patient.timeout = patience;
  client::Client asked(address, patient);
  if (!asked.status().ok()) return OptionsError(asked.status());
  const absl::Status reached = asked.GetServerInfo().status();
  if (absl::IsDeadlineExceeded(reached)) {
    return ServerError(
        absl::UnavailableError(absl::StrCat("no answer within ", absl::FormatDuration(patience))),
        address);
  }
  if (!reached.ok()) return ServerError(reached, address);
  return std::make_unique<RemoteEngine>(address, options);
}

}  // namespace quantd::cli
