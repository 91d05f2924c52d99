// See work.h.
#include "server/rpc/work.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/wire/status_details.h"

namespace quantd::rpc {
namespace {

// Reading a tensor that comes as values takes longer than quantizing it.
constexpr uint64_t kDecodeCost = 4;

}  // namespace

void Work::MoveToPool(Event& moved) {
  on_pool_ = true;
  backend_.pool.Enqueue([&moved] { moved.Complete(true); });
}

void Work::Take(grpc::ByteBuffer& bytes_in, Event& taken) {
  message_.Swap(&bytes_in);  // it has no move: a copy would keep the slices of `bytes_in`
  if (message_.Length() > backend_.inline_bytes / kDecodeCost) {
    MoveToPool(taken);
  } else {
    taken.Complete(true);
  }
}

absl::Status Work::TakeSlices() {
  absl::StatusOr<wire::SliceList> slices = wire::SliceList::Take(std::move(message_));
  if (!slices.ok()) return slices.status();
  slices_ = *std::move(slices);
  return absl::OkStatus();
}

absl::Status Work::Decode(wire::Method method) {
  if (absl::Status status = TakeSlices(); !status.ok()) return status;
  absl::StatusOr<wire::Request> request = wire::DecodeRequest(method, slices_);
  if (!request.ok()) return request.status();
  request_ = *std::move(request);
  return absl::OkStatus();
}

absl::Status Work::DecodeItem() {
  if (absl::Status status = TakeSlices(); !status.ok()) return status;
  wire::StreamItem item = wire::DecodeStreamItem(slices_);
  id_ = item.id;
  if (!item.request.ok()) return item.request.status();
  request_ = *std::move(item.request);
  return absl::OkStatus();
}

absl::Status Work::Plan() {
  absl::StatusOr<operations::Operation> operation = operations::Plan(*request_);
  if (!operation.ok()) return operation.status();
  operation_ = *std::move(operation);
  const uint64_t answer_bytes = wire::MaxEncodedBytes(operation_->answer_layout());
  if (answer_bytes > backend_.max_message_bytes) {
    backend_.metrics.rejected(metrics::Rejection::kAnswerTooLarge).Add(1);
    return wire::WithReason(absl::ResourceExhaustedError(absl::StrCat(
                                "the answer takes ", answer_bytes, " bytes, the server allows ",
                                backend_.max_message_bytes, " (--max_message_bytes)")),
                            "ANSWER_TOO_LARGE");
  }
  return absl::OkStatus();
}

absl::Status Work::Admit(Event& admitted) {
  admit_time_ = Clock::now();
  const absl::StatusOr<bool> granted = backend_.admission.Request(
      slices_.size() + operation_->memory_bytes(), permit_, [this, &admitted] {
        if (large()) {
          MoveToPool(admitted);
        } else {
          admitted.Complete(true);
        }
      });
  if (granted.ok()) {
    queued_ = !*granted;
    if (queued_) return absl::OkStatus();
    if (large() && !on_pool_) {
      MoveToPool(admitted);
    } else {
      admitted.Complete(true);
    }
    return absl::OkStatus();
  }
  if (absl::IsUnavailable(granted.status())) {
    backend_.metrics.rejected(metrics::Rejection::kQueueFull).Add(1);
    return wire::WithReason(granted.status(), "QUEUE_FULL");
  }
  backend_.metrics.rejected(metrics::Rejection::kOverBudget).Add(1);
  return wire::WithReason(granted.status(), "OVER_MEMORY_BUDGET");
}

absl::Status Work::Interruption() const {
  if (!done_.ready()) return absl::OkStatus();
  if (std::chrono::system_clock::now() >= context_.deadline()) {
    return absl::DeadlineExceededError("the deadline passed before the answer was ready");
  }
  return absl::CancelledError("the client cancelled the call");
}

absl::Status Work::Execute() {
  const Clock::time_point begin = Clock::now();
  backend_.metrics.queue_seconds().Observe(begin - admit_time_);
  if (absl::Status status = Interruption(); !status.ok()) return status;

  answer_.emplace(operation_->answer_layout());
  const Executor& executor = on_pool_ ? backend_.pool : backend_.inline_;
  const absl::Status status =
      operation_->Execute(executor, [this] { return done_.ready(); }, answer_->contents());
  const absl::Status end = absl::IsCancelled(status) ? Interruption() : status;
  if (end.ok()) Count(Clock::now() - begin);
  // Here, not when the call ends: a large message is tens of thousands of slices, and on this
  // thread freeing them keeps no other call waiting.
  operation_.reset();
  request_.reset();
  slices_ = wire::SliceList();
  return end;
}

void Work::Count(Clock::duration kernel_time) {
  const auto kind = static_cast<metrics::Operation>(operation_->method());
  metrics::OperationMetrics& counts = backend_.metrics.operation(kind);
  counts.kernel_seconds.Observe(kernel_time);
  counts.bytes_in.Add(operation_->input_bytes());
  counts.bytes_out.Add(operation_->output_bytes());
  backend_.metrics.CountElements(kind, operation_->input_type(), operation_->output_type(),
                                 operation_->elements());
  if (operation_->answer_layout().report_error) {
    backend_.metrics.saturated_elements().Add(answer_->contents().error.saturated_elements);
  }
}

grpc::ByteBuffer Work::EncodeItem(const absl::Status& status) {
  if (!status.ok()) return wire::EncodeItemError(id_, status);
  return std::move(*answer_).FinishItem(id_);
}

}  // namespace quantd::rpc
