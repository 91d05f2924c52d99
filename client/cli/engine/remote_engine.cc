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
#include "quantd/client/client.h"
#include "quantd/v1/quantization.pb.h"
#include "status_macros.h"

namespace quantd::cli {
// The core's enums in the messages of the contract.
// kLast is the core's last value, kMax the contract's, and kOfFirst the contract's number of the
// core's 0. A value that only one of them has is a compile error.
template <auto kLast, auto kMax, int kOfFirst>
struct Pair {
  static_assert(static_cast<int>(kLast) + kOfFirst == static_cast<int>(kMax));
  using Core = decltype(kLast);
  using Wire = decltype(kMax);
  static Wire OnWire(Core value) { return static_cast<Wire>(static_cast<int>(value) + kOfFirst); }
};
template <auto kLast, auto kMax>
using Same = Pair<kLast, kMax, 0>;
// The core has no value for the contract's 0, which means its first one.
template <auto kLast, auto kMax>
using SameOrFirst = Pair<kLast, kMax, 1>;

// The pair of each enum of the core; declarations only.
Same<kDataTypes.back().type, v1::DataType_MAX> PairOf(DataType);
Same<Symmetry::kSymmetric, v1::Symmetry_MAX> PairOf(Symmetry);
Same<EmbeddingRecipe::kBits, v1::EmbeddingRecipe_MAX> PairOf(EmbeddingRecipe);
Same<BitOrder::kLsbFirst, v1::BitOrder_MAX> PairOf(BitOrder);
Same<BitThreshold::kGreaterOrEqual, v1::BitThreshold_MAX> PairOf(BitThreshold);
Same<SignedBits::kTwosComplement, v1::SignedBits_MAX> PairOf(SignedBits);
SameOrFirst<NonFinite::kIgnore, v1::NonFinite_MAX> PairOf(NonFinite);
SameOrFirst<ZeroPointOrder::kBeforeRounding, v1::ZeroPointOrder_MAX> PairOf(ZeroPointOrder);

template <typename Enum>
auto OnWire(Enum value) {
  return decltype(PairOf(value))::OnWire(value);
}

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

  absl::Status Run(const Parameters& parameters, const DynamicQuantizeOutput& output,
                   QuantizationError* error) override {
    return std::visit([&](const auto& each) { return Send(each, output, error); }, parameters);
  }

  double TakeServerSeconds() override {
    return static_cast<double>(server_microseconds_.exchange(0)) / 1e6;
  }

 private:
  absl::Status Send(const QuantizeParameters& p, const DynamicQuantizeOutput& output,
                    QuantizationError* error) {
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
    return CopyTo(result->y, output.y);
  }

  absl::Status Send(const DynamicQuantizeParameters& p, const DynamicQuantizeOutput& output,
                    QuantizationError* error) {
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
    QUANTD_RETURN_IF_ERROR(CopyTo(result->y, output.y));
    QUANTD_RETURN_IF_ERROR(CopyTo(result->scale, output.scale));
    QUANTD_RETURN_IF_ERROR(
        CopyTo(result->zero_point.value_or(client::Tensor()), output.zero_point));
    return CopyTo(result->tensor_scale.value_or(client::Tensor()), output.tensor_scale);
  }

  absl::Status Send(const DequantizeParameters& p, const DynamicQuantizeOutput& output,
                    QuantizationError*) {
    const client::DequantizeOptions options{.output_type = OnWire(p.output_type),
                                            .granularity = ToGranularity(p.granularity),
                                            .tensor_scale = ToTensor(p.tensor_scale)};
    const auto result =
        client_.Dequantize(ToTensor(p.x), ToTensor(p.scale), ToTensor(p.zero_point), options);
    if (!result.ok()) return ServerError(result.status(), address_);
    return CopyTo(*result, output.y);
  }

  absl::Status Send(const QuantizeEmbeddingsParameters& p, const DynamicQuantizeOutput& output,
                    QuantizationError* error) {
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
    return CopyTo(result->y, output.y);
  }

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
