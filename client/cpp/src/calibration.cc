#include "quantd/client/calibration.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cancellation.h"
#include "connection.h"
#include "messages.h"
#include "split/channel_pieces.h"
#include "status_macros.h"

namespace quantd::client {
namespace {

// The size of a message, which is sent while the previous one is counted.
constexpr uint64_t kMessageBytes = 4 << 20;
// The bytes around a tensor's bytes.
constexpr uint64_t kAround = 1024;
// From this size on the server is asked for its limits. Earlier than for other calls, because a
// refused calibration is not repeated.
constexpr uint64_t kAskCalibratingBytes = 4 << 10;

v1::CalibrationOptions MessageOf(const CalibrationOptions& options) {
  v1::CalibrationOptions message;
  message.set_method(options.method);
  message.set_output_type(options.output_type);
  message.set_symmetry(options.symmetry);
  if (options.axis.has_value()) message.set_axis(*options.axis);
  message.set_percentile(options.percentile);
  message.set_non_finite(options.non_finite);
  message.set_return_state(options.return_state);
  return message;
}

}  // namespace

struct Calibration::Call {
  explicit Call(Connection& to) : connection(to) {}

  Connection& connection;
  CalibrationOptions options;
  absl::Time deadline;
  Cancellation cancellation;
  grpc::ClientContext context;
  v1::CalibrateResponse response;
  std::unique_ptr<grpc::ClientWriter<v1::CalibrateRequest>> writer;  // null: not begun, or failed
  bool begun = false;                                                // the options are sent
  bool finished = false;
  absl::Status status;
};

Calibration::Calibration(Connection& connection, const CalibrationOptions& options)
    : call_(std::make_unique<Call>(connection)) {
  call_->options = options;
  call_->status = connection.status();
  if (!call_->status.ok()) return;
  call_->deadline =
      absl::Now() +
      (options.timeout > absl::ZeroDuration() ? options.timeout : connection.options().timeout);
  connection.Prepare(call_->context, call_->deadline);
  call_->cancellation.Add(&call_->context);
  call_->writer = connection.stub().Calibrate(&call_->context, &call_->response);
}

Calibration::Calibration(Calibration&&) noexcept = default;
Calibration& Calibration::operator=(Calibration&& other) noexcept {
  Calibration old(std::move(*this));
  call_ = std::move(other.call_);
  return *this;
}

Calibration::~Calibration() {
  if (call_ == nullptr || call_->writer == nullptr || call_->finished) return;
  call_->context.TryCancel();
  call_->writer->Finish();
}

void Calibration::Cancel() { call_->cancellation.Cancel(); }

absl::Status Calibration::Send(v1::CalibrateRequest& message) {
  Call& call = *call_;
  if (!call.status.ok()) return call.status;
  if (call.finished) return absl::FailedPreconditionError("the calibration is finished");
  if (!call.begun) *message.mutable_options() = MessageOf(call.options);
  call.begun = true;
  if (call.writer->Write(message)) return absl::OkStatus();
  // The server has ended the call; its status says why.
  call.finished = true;
  call.status = call.connection.Explain(call.writer->Finish());
  if (call.status.ok()) call.status = absl::InternalError("the server answered before the end");
  return call.status;
}

absl::Status Calibration::Add(const Tensor& x) {
  if (!x.shared.has_value()) return Add(x.data_type, x.shape, x.data);
  v1::CalibrateRequest message;
  SetTensor(x, message.mutable_x());
  return Send(message);
}

absl::Status Calibration::Add(v1::DataType type, absl::Span<const int64_t> shape,
                              absl::string_view data) {
  Call& call = *call_;
  if (!call.status.ok()) return call.status;
  uint64_t most = UINT64_MAX;
  if (call.connection.options().split) {
    std::optional<ServerLimits> limits = call.connection.KnownLimits();
    if (!limits.has_value() && data.size() >= kAskCalibratingBytes) {
      const absl::StatusOr<ServerLimits> asked =
          call.connection.Limits(false, &call.cancellation, call.deadline);
      if (!asked.ok()) return call.status = asked.status();
      limits = *asked;
    }
    const uint64_t allowed = limits.value_or(ServerLimits()).message_bytes;
    most = std::min(kMessageBytes, std::max(allowed, 2 * kAround)) - kAround;
  }
  const auto send = [&](absl::Span<const int64_t> piece_shape, absl::string_view piece) {
    v1::CalibrateRequest message;
    v1::Tensor& x = *message.mutable_x();
    x.set_data_type(type);
    x.mutable_shape()->Add(piece_shape.begin(), piece_shape.end());
    x.set_raw_data(piece.data(), piece.size());
    return Send(message);
  };
  return split::ForEachChannelPiece(type, shape, data, call.options.axis, most, send);
}

absl::Status Calibration::AddState(absl::string_view state) {
  v1::CalibrateRequest message;
  message.set_state(std::string(state));
  return Send(message);
}

absl::StatusOr<Calibrated> Calibration::Finish() {
  Call& call = *call_;
  if (!call.status.ok()) return call.status;
  if (!call.begun) {
    v1::CalibrateRequest empty;
    QUANTD_RETURN_IF_ERROR(Send(empty));
  }
  if (call.finished) return absl::FailedPreconditionError("the calibration is finished");
  call.finished = true;
  call.writer->WritesDone();
  call.status = call.connection.Explain(call.writer->Finish());
  if (!call.status.ok()) return call.status;
  v1::CalibrateResponse& response = call.response;
  Calibrated result;
  result.scale = TakeTensor(std::move(*response.mutable_scale()));
  if (response.has_zero_point()) {
    result.zero_point = TakeTensor(std::move(*response.mutable_zero_point()));
  }
  result.range = TakeTensor(std::move(*response.mutable_range()));
  result.elements = response.elements();
  result.non_finite_elements = response.non_finite_elements();
  result.state = std::move(*response.mutable_state());
  return result;
}

}  // namespace quantd::client
