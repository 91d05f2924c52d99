#include "server/rpc/calibrating.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "server/errors/reason.h"
#include "server/rpc/request_run.h"
#include "server/wire/decode.h"

namespace quantd::rpc {
namespace {

using errors::WithReason;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

// The memory of a state or a result in addition to its contents.
constexpr uint64_t kBufferBytes = 64 << 10;

// Times per channel, for the estimate: the search for a threshold, the rest of a result, and bins
// that are written or read.
constexpr microseconds kSearch{10'000};
constexpr microseconds kPlainResult{10};
constexpr microseconds kBins{20};

// The memory of a search on each core: 24 bytes per bin.
constexpr uint64_t kSearchBytes = 192 << 10;

// Clients that hold less are never given up.
constexpr uint64_t kWorthGivingUp = 4 << 10;

constexpr uint64_t kRoomOfResponse = 1024;  // allocator's rounding, and bytes before the message

}  // namespace

Calibrating::~Calibrating() { stream_.loop().timers().Clear(*this); }

bool Calibrating::Next() {
  reservation_.emplace(backend_, stream_);
  decoding_ = {};
  cost_ = {};
  begin_ = Clock::now();
  if (phase_ != Phase::kMessages) return false;
  if (held_.bytes() >= kWorthGivingUp) {
    refused_before_ = backend_.admission.holds_refused();
    stream_.loop().timers().Set(*this, begin_ + backend_.stall_timeout);
  }
  return true;
}

void Calibrating::Fire() {
  const uint64_t refused = backend_.admission.holds_refused();
  if (refused == refused_before_ && !backend_.admission.anyone_waits()) {
    stream_.loop().timers().Set(*this, Clock::now() + std::chrono::seconds(1));
    return;
  }
  stream_.Interrupt(WithReason(
      absl::UnavailableError(absl::StrCat(
          "the calibration holds ", held_.bytes(), " bytes and no message came for ",
          std::chrono::duration_cast<std::chrono::milliseconds>(backend_.stall_timeout).count(),
          " ms (--stall_timeout) while others waited for memory; try again later")),
      "UPLOAD_STALLED"));
}

absl::Status Calibrating::Received(bool has_message) {
  stream_.loop().timers().Clear(*this);
  if (!has_message) {
    if (stream_.interrupted()) return stream_.interruption();
    phase_ = Phase::kResult;
    begin_ = Clock::now();
    if (calibrator_.has_value() && calibrator_->channels() > 0) return absl::OkStatus();
    return FieldError("x", "x is missing: the client has sent neither data nor a state");
  }
  begin_ = calibrator_.has_value() ? stream_.message_began_at() : stream_.arrived_at();
  rest_ = wire::RestOf(wire::Method::kCalibrate, message_.bytes(), wire::kFewFields);
  // Little time means little memory.
  const uint64_t little = wire::DecodeNanoseconds(rest_);
  if (little > wire::kLittleDecodeMemory) return absl::OkStatus();
  return CatchOutOfMemory([this] { return DecodeNow(); });
}

absl::Status Calibrating::DecodeNow() {
  const Clock::time_point begin = timeline_ == nullptr ? Clock::time_point() : Clock::now();
  absl::StatusOr<wire::CalibrateMessage> request = wire::DecodeCalibrate(message_.bytes());
  absl::Status status = request.status();
  if (status.ok()) {
    request_ = *std::move(request);
    status = Prepare();
  }
  if (timeline_ != nullptr) {
    timeline_->decoded = Clock::now();
    decoding_ = timeline_->decoded - begin;
    timeline_->Add(rpc::Phase::kDecode, decoding_);
  }
  return status;
}

// Checks what can be checked before the elements of a message are read.
absl::Status Calibrating::Prepare() {
  wire::CalibrateMessage& request = *request_;
  if (!calibrator_.has_value()) {
    options_ = request.options;
    absl::StatusOr<Calibrator> calibrator = Calibrator::Create(options_);
    if (!calibrator.ok()) return calibrator.status();
    calibrator_ = *std::move(calibrator);
    return_state_ = request.return_state;
    if (options_.output_type != DataType::kUnspecified) output_type_ = options_.output_type;
  } else if (request.has_options) {
    return FieldError("options", "options is set, but only the first message may have it");
  } else if (!request.x.has_value() && request.state.empty()) {
    return FieldError("x", "x and state are both missing: the message adds nothing");
  }
  memory_ = message_.size;
  for (const std::vector<uint8_t>& values : request.packed) memory_ += values.capacity();
  estimate_ = {};
  uint64_t elements = 0;
  if (request.x.has_value()) {
    TensorView& x = *request.x;
    if (request.shared.has_value()) {
      absl::Status found = shared_.FindTensor(backend_.regions, *request.shared, x);
      if (!found.ok()) return found;
    }
    const absl::StatusOr<uint64_t> bytes = calibrator_->BytesWith(x);
    if (!bytes.ok()) return bytes.status();
    keeps_ = *bytes;
    elements = x.bytes.size() * 8 / static_cast<uint64_t>(Info(x.data_type).bits);
    cost_ = operations::KindOf(x, options_, !request.packed.empty());
    estimate_ = backend_.costs.Estimate(cost_);
  }
  if (!request.state.empty()) {
    const absl::StatusOr<uint64_t> bytes = calibrator_->BytesWithState(request.state);
    if (!bytes.ok()) return bytes.status();
    keeps_ = std::max(keeps_, *bytes / 2);
    memory_ += *bytes / 2 + kBufferBytes;
    // A channel takes at least 2 bytes, and so does a bin.
    estimate_ += request.state.size() * nanoseconds(20);
  }
  if (request.x.has_value()) memory_ += Calibrator::AddScratchBytes(elements, MostCores());
  grows_ = keeps_ - std::min(keeps_, held_.bytes());
  return absl::OkStatus();
}

// The most cores that computing can use, according to its estimate.
int Calibrating::MostCores() const {
  return static_cast<int>(std::clamp<int64_t>(estimate_ / kWorthACore, 1, backend_.policy.cores));
}

absl::Status Calibrating::Admit(loop::Event& admitted) {
  switch (phase_) {
    case Phase::kMessages:
      if (request_.has_value()) break;
      {
        // Sent as values, or in fields of unknown content.
        memory_ = message_.size + wire::DecodeMemoryBytes(rest_) +
                  Calibrator::AddScratchBytes(message_.size, backend_.policy.cores);
        grows_ = 0;  // asked for once it is known
        estimate_ = LateEstimate(backend_, rest_, message_.size);
      }
      break;
    case Phase::kResult: {
      const size_t channels = calibrator_->channels();
      const bool searches = options_.method == CalibrationMethod::kMse ||
                            options_.method == CalibrationMethod::kEntropy;
      memory_ = kBufferBytes + wire::CalibrationMemoryBytes(channels, 0);
      grows_ = 0;
      estimate_ = channels * (searches ? kSearch : kPlainResult);
      if (searches) memory_ += static_cast<uint64_t>(backend_.policy.cores) * kSearchBytes;
      if (options_.method != CalibrationMethod::kMinMax) estimate_ += channels * kBins;
      break;
    }
    case Phase::kState:
    case Phase::kDone:
      memory_ = wire::CalibrationMemoryBytes(0, state_bytes_);
      estimate_ = calibrator_->channels() * kBins;
      break;
  }
  const uint64_t held = held_.bytes() + result_permit_.bytes();
  if (const uint64_t more = ExpectResponse(); more != 0) {
    absl::Status asked = reservation_->AskForMemory(memory_ + grows_ + more, held, admitted);
    if (!absl::IsResourceExhausted(asked)) return asked;
    compression_.GiveUp();
  }
  return reservation_->AskForMemory(memory_ + grows_, held, admitted);
}

// The memory for compressing the response, if this round ends with it.
uint64_t Calibrating::ExpectResponse() {
  if (phase_ == Phase::kMessages || (phase_ == Phase::kResult && return_state_)) return 0;
  return compression_.Expect(wire::MaxCalibrationBytes(calibrator_->channels(), state_bytes_));
}

absl::Status Calibrating::Admitted(bool granted) {
  return granted ? absl::OkStatus() : InterruptedStatus();
}

absl::Status Calibrating::TakeCore(loop::Event& scheduled) {
  stream_.Busy();  // until it is computed
  return reservation_->AskForCore(estimate_ + compression_.time(), scheduled);
}

absl::Status Calibrating::MayCompute(bool granted) {
  reservation_->Began(granted);
  return granted ? absl::OkStatus() : InterruptedStatus();
}

void Calibrating::NoteQueue(Clock::duration waited) const {
  if (timeline_ != nullptr) timeline_->Add(rpc::Phase::kQueue, waited - decoding_);
}

absl::Status Calibrating::InterruptedStatus() const {
  NoteQueue(Clock::now() - begin_);
  return rpc::InterruptedStatus(backend_, stream_);
}

void Calibrating::DropMessage() {
  request_.reset();
  shared_ = {};
  message_ = transport::Message();
}

absl::Status Calibrating::Compute() {
  const Clock::time_point begin = Clock::now();
  if (timeline_ != nullptr) timeline_->kernel_began = begin;
  absl::Status status = stream_.interrupted() ? stream_.interruption() : CatchOutOfMemory([this] {
    switch (phase_) {
      case Phase::kMessages:
        return Add();
      case Phase::kResult:
        return FindResult();
      case Phase::kState:
      case Phase::kDone:
        break;
    }
    return Finish(calibrator_->State());
  });
  if (shared_.damaged()) status = shared_.Damage();
  if (absl::IsCancelled(status) && stream_.interrupted()) status = stream_.interruption();
  const Clock::duration took = Clock::now() - begin;
  stream_.Idle(Clock::now());
  const int cores = std::max(reservation_->cores(), 1);
  backend_.metrics.CountComputing(cores, took);
  if (status.ok()) {
    Count(took);
    if (cost_.bytes != 0) backend_.costs.Learn(cost_, took * cores);
  }
  reservation_->GiveCores();
  if (status.ok() && phase_ == Phase::kMessages) held_.Shrink(keeps_);
  DropMessage();
  if (phase_ == Phase::kMessages || !status.ok()) reservation_->permit().Release();
  if (phase_ != Phase::kDone) return status;
  result_permit_.Release();
  // A compressed response uses as much memory as before.
  reservation_->KeepForResponse(
      kRoomOfResponse + (compression_.done() ? response_.buffer.capacity() : response_.size));
  return status;
}

// Moves the additional memory of the calibrator out of the round's permit, or reserves it.
absl::Status Calibrating::Hold() {
  const uint64_t spare = reservation_->permit().bytes() - memory_;
  absl::Status held = backend_.admission.Hold(grows_, spare, reservation_->permit(), held_);
  if (held.ok()) return held;
  return WithReason(held, absl::IsUnavailable(held) ? "QUEUE_FULL" : "OVER_MEMORY_BUDGET");
}

absl::Status Calibrating::Add() {
  if (!request_.has_value()) {
    if (absl::Status status = DecodeNow(); !status.ok()) return status;
    if (memory_ > reservation_->permit().bytes()) {
      return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                            "the message needs ", memory_, " bytes of memory, it was given ",
                            reservation_->permit().bytes(), "; send x as raw_data")),
                        "OVER_MEMORY_BUDGET");
    }
  }
  if (absl::Status status = Hold(); !status.ok()) return status;
  const Clock::time_point begin = Clock::now();
  backend_.metrics.queue_seconds().Observe(begin - begin_);
  NoteQueue(begin - begin_);
  if (timeline_ != nullptr) timeline_->kernel_began = begin;
  if (auto* const before = before_kernel_for_testing.load(std::memory_order_relaxed)) before();
  absl::Status status;
  if (request_->x.has_value()) {
    const auto interrupted = [this] { return stream_.interrupted() || shared_.damaged(); };
    status = calibrator_->Add(*request_->x, reservation_->TakeCores(MostCores()), interrupted);
  }
  if (status.ok() && !request_->state.empty()) status = calibrator_->Merge(request_->state);
  return status;
}

absl::Status Calibrating::FindResult() {
  NoteQueue(Clock::now() - begin_);
  if (auto* const before = before_kernel_for_testing.load(std::memory_order_relaxed)) before();
  absl::StatusOr<Calibration> result = calibrator_->Result(
      reservation_->TakeCores(MostCores()), [this] { return stream_.interrupted(); });
  if (!result.ok()) return result.status();
  result_ = *std::move(result);
  if (return_state_) state_bytes_ = calibrator_->StateBytes();
  const uint64_t response_bytes = wire::MaxCalibrationBytes(calibrator_->channels(), state_bytes_);
  if (response_bytes > backend_.max_message_bytes) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                          "the response takes ", response_bytes, " bytes, the server allows ",
                          backend_.max_message_bytes, " (--max_message_bytes)")),
                      "ANSWER_TOO_LARGE");
  }
  if (!return_state_) return Finish("");
  result_permit_ = std::move(reservation_->permit());
  phase_ = Phase::kState;
  return absl::OkStatus();
}

absl::Status Calibrating::Finish(std::string state) {
  const Clock::time_point begin = Clock::now();
  calibrator_.reset();
  held_.Release();
  const uint64_t state_bytes = state.size();
  response_ = wire::EncodeCalibration(result_, output_type_, std::move(state), backend_.pool);
  if (response_.begin == nullptr) return NoMemory();
  compression_.Run(transport::Contents::kNumbers, response_);
  if (timeline_ != nullptr) timeline_->Add(rpc::Phase::kEncode, Clock::now() - begin);
  const uint64_t channels = result_.scale.size();
  const bool has_zero_point = result_.has_zero_point;
  result_ = {};
  const uint64_t bytes_out =
      3 * sizeof(float) * channels +
      (has_zero_point ? ByteSize(output_type_, static_cast<int64_t>(channels)) : 0) + state_bytes;
  backend_.metrics.operation(wire::Method::kCalibrate).bytes_out.Add(bytes_out);
  if (timeline_ != nullptr) timeline_->bytes_out += static_cast<int64_t>(bytes_out);
  phase_ = Phase::kDone;
  return absl::OkStatus();
}

void Calibrating::Count(Clock::duration kernel_time) {
  metrics::OperationMetrics& counts = backend_.metrics.operation(wire::Method::kCalibrate);
  counts.kernel_seconds.Observe(kernel_time);
  if (timeline_ != nullptr) {
    timeline_->kernel_ended = Clock::now();
    timeline_->Add(rpc::Phase::kKernel, timeline_->kernel_ended - timeline_->kernel_began);
  }
  if (!request_.has_value()) return;
  uint64_t bytes = request_->state.size();
  if (request_->x.has_value()) {
    const TensorView& x = *request_->x;
    const int64_t elements = *ElementCount(x.shape, "x.shape");
    bytes += x.bytes.size();
    backend_.metrics.CountElements(wire::Method::kCalibrate, x.data_type, output_type_, elements);
    if (timeline_ != nullptr) {
      timeline_->elements += elements;
      timeline_->input = x.data_type;
      timeline_->output = output_type_;
    }
  }
  counts.bytes_in.Add(bytes);
  if (timeline_ != nullptr) timeline_->bytes_in += static_cast<int64_t>(bytes);
}

}  // namespace quantd::rpc
