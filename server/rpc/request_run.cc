#include "server/rpc/request_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "server/operations/memory.h"
#include "server/operations/scratch_bytes.h"
#include "server/wire/call_status.h"

namespace quantd::rpc {
namespace {

using wire::WithReason;

// kWorthACore (reservation.h) if y is in shared memory, and so is not sent.
constexpr std::chrono::microseconds kWorthACoreShared{50};

// For a request that is not decoded yet: the largest response per byte of its tensors, a FLOAT for
// 2 bits.
constexpr uint64_t kWidestResponse = 18;
constexpr uint64_t kErrorBytes = 4 << 10;  // of a response with an error

}  // namespace

absl::Status RequestRun::Decode(wire::Method method) {
  method_ = method;
  begin_ = method == wire::Method::kStream ? stream_.message_began_at() : stream_.arrived_at();
  rest_ = wire::RestOf(method, message_.bytes(), wire::kFewFields);
  // Little time means little memory.
  if (wire::DecodeNanoseconds(rest_) > wire::kLittleDecodeMemory) return absl::OkStatus();
  return CatchOutOfMemory([this] { return DecodeNow([] {}); });
}

absl::Status RequestRun::DecodeNow(wire::BetweenPieces between) {
  if (timeline_ == nullptr) return DecodeMessage(between);
  const Clock::time_point begin = Clock::now();
  const absl::Status status = DecodeMessage(between);
  timeline_->decoded = Clock::now();
  decoding_ = timeline_->decoded - begin - reservation_.stood();
  timeline_->Add(Phase::kDecode, decoding_);
  return status;
}

absl::Status RequestRun::DecodeMessage(wire::BetweenPieces between) {
  // The id of an item may follow its values.
  if (!rest_.whole && method_ == wire::Method::kStream) {
    rest_ = wire::RestOf(method_, message_.bytes());
  }
  absl::StatusOr<wire::Request> request = wire::DecodeRequest(method_, message_.bytes(), between);
  if (!request.ok()) return request.status();
  between();
  work_ = std::make_unique<Work>(*std::move(request));
  return work_->shared.Find(backend_.regions, work_->request, stream_.peer());
}

absl::Status RequestRun::InterruptedStatus() const {
  if (timeline_ != nullptr) NoteQueue(Clock::now() - begin_);
  return rpc::InterruptedStatus(backend_, stream_);
}

absl::Status RequestRun::Admit(loop::Event& admitted) {
  uint64_t bytes = message_.buffer.capacity();
  if (work_ != nullptr) {
    // Data in shared memory is not the server's memory.
    bytes += operations::MemoryBound(work_->request) + work_->shared.copied_bytes() +
             work_->request.packed_bytes();
    cost_ = operations::CostOf(work_->request);
  } else {
    // Sent as values, or in fields of unknown content: their largest size in memory.
    bytes += wire::DecodeMemoryBytes(rest_) +
             std::min(kWidestResponse * message_.size, 2 * backend_.max_message_bytes) +
             operations::ScratchBytes(0);
    cost_.time = LateEstimate(backend_, rest_, message_.size);
  }
  if (const uint64_t more = ExpectResponse(); more != 0) {
    absl::Status asked = reservation_.AskForMemory(bytes + more, admitted);
    if (!absl::IsResourceExhausted(asked)) return asked;
    compression_.GiveUp();
  }
  return reservation_.AskForMemory(bytes, admitted);
}

// The most memory for compressing the response.
uint64_t RequestRun::ExpectResponse() {
  if (stream_.out_encoding() == transport::Encoding::kIdentity) return 0;
  return compression_.Expect(
      work_ != nullptr ? operations::ResponseBound(work_->request)
                       : std::min(kWidestResponse * message_.size, backend_.max_message_bytes));
}

absl::Status RequestRun::TakeCore(loop::Event& scheduled) {
  stream_.Busy();  // until it is computed
  made_as_sent_ = IsMadeAsSent();
  if (made_as_sent_) {
    scheduled.Complete(true);
    return absl::OkStatus();
  }
  return reservation_.AskForCore(cost_.time + compression_.time(), scheduled);
}

absl::Status RequestRun::MayCompute(bool granted) {
  reservation_.Began(granted);
  return granted ? absl::OkStatus() : InterruptedStatus();
}

absl::Status RequestRun::Execute() {
  const Clock::time_point begin = Clock::now();
  reservation_.BeginTurn(begin);
  absl::Status status = stream_.interrupted() ? stream_.interruption() : CatchOutOfMemory([this] {
    absl::Status planned =
        work_ != nullptr ? absl::OkStatus() : DecodeNow([this] { reservation_.LetOthers(); });
    if (planned.ok()) planned = Plan();
    return planned;
  });
  if (status.ok()) status = CatchOutOfMemory([this] { return Run(); });
  const int cores = std::max(reservation_.cores(), 1);
  const Clock::time_point end = Clock::now();
  computing_ = end - begin - reservation_.stood() / cores;
  backend_.metrics.CountComputing(cores, computing_);
  reservation_.GiveSpareCores();
  stream_.Idle(end);
  if (!status.ok()) made_as_sent_ = false;
  if (!made_as_sent_) EndKernel();
  if (status.ok()) status = CatchOutOfMemory([this] { return Encode(); });
  if (work_ != nullptr && work_->shared.damaged()) status = work_->shared.Damage();
  if (absl::IsCancelled(status) && stream_.interrupted()) status = stream_.interruption();
  if (!made_as_sent_) Computed(status);
  return status;
}

void RequestRun::EndKernel() {
  if (timeline_ == nullptr || kernel_began_ == Clock::time_point()) return;
  timeline_->kernel_ended = Clock::now();
  timeline_->Add(Phase::kKernel,
                 made_as_sent_ ? computing_ : timeline_->kernel_ended - kernel_began_);
}

void RequestRun::DropRequest() {
  work_.reset();
  message_ = transport::Message();
}

// The response is complete, or has failed.
void RequestRun::Computed(const absl::Status& status) {
  if (status.ok()) Count();
  const uint64_t response_bytes =
      status.ok() ? wire::ResponseMemoryBytes(work_->operation->response_layout()) - SavedBytes()
                  : kErrorBytes;
  // Here, not at the end of the call: only the response is needed from now on.
  DropRequest();
  if (!status.ok()) piece_ = memory::Piece();
  if (status.ok() && compression_.time().count() != 0) Compress();
  response_.reset();
  reservation_.GiveCores();
  reservation_.KeepForResponse(response_bytes);
}

absl::Status RequestRun::CheckMemory(uint64_t needed) {
  if (needed <= reservation_.permit().bytes()) return absl::OkStatus();
  // Only for requests that could not be checked earlier.
  return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                        "the request needs ", needed, " bytes of memory, it was given ",
                        reservation_.permit().bytes(), "; send its tensors as raw_data")),
                    "OVER_MEMORY_BUDGET");
}

absl::Status RequestRun::Plan() {
  const uint64_t here =
      message_.buffer.capacity() + work_->shared.copied_bytes() + work_->request.packed_bytes();
  absl::Status enough = CheckMemory(here + operations::PlanBytes(work_->request));
  if (!enough.ok()) return enough;
  if (absl::Status copied = work_->shared.Copy(work_->request); !copied.ok()) return copied;
  absl::StatusOr<operations::Operation> operation = operations::Plan(work_->request);
  if (!operation.ok()) return operation.status();
  work_->operation = *std::move(operation);
  const wire::ResponseLayout& layout = work_->operation->response_layout();
  if (absl::Status good = work_->shared.CheckOutput(layout.y.bytes); !good.ok()) return good;
  const uint64_t response_bytes = wire::MaxEncodedBytes(layout);
  if (response_bytes > backend_.max_message_bytes) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                          "the response takes ", response_bytes, " bytes, the server allows ",
                          backend_.max_message_bytes, " (--max_message_bytes)")),
                      "ANSWER_TOO_LARGE");
  }
  const uint64_t memory = here + work_->operation->memory_bytes();
  if (enough = CheckMemory(memory); !enough.ok()) return enough;
  const uint64_t more = compression_.Expect(response_bytes);
  if (memory + more > reservation_.permit().bytes()) compression_.GiveUp();
  reservation_.permit().Shrink(memory + more - SavedBytes());
  return absl::OkStatus();
}

const Executor& RequestRun::TakeCores() {
  const auto worth =
      work_->operation->response_layout().output.has_value() ? kWorthACoreShared : kWorthACore;
  return reservation_.TakeCores(cost_.time / worth);
}

absl::Status RequestRun::Run() {
  const Clock::time_point now = Clock::now();
  backend_.metrics.queue_seconds().Observe(now - begin_);
  NoteQueue(now - begin_);
  kernel_began_ = now;
  if (timeline_ != nullptr) timeline_->kernel_began = now;
  response_.emplace(work_->operation->response_layout(), backend_.pool, made_as_sent_);
  if (!response_->has_memory()) return NoMemory();
  if (auto* const before = before_kernel_for_testing.load(std::memory_order_relaxed)) before();
  wire::ResponseContents& contents = response_->contents();
  const wire::ResponseLayout& layout = work_->operation->response_layout();
  const auto interrupted = [this] { return Interrupted(); };
  if (layout.output.has_value()) {
    contents.y = work_->shared.PrepareOutput(layout.y.bytes, interrupted);
  }
  if (made_as_sent_) return absl::OkStatus();
  return work_->operation->Execute(TakeCores(), interrupted, contents);
}

bool RequestRun::Interrupted() {
  reservation_.LetOthers();
  return stream_.interrupted() || (work_ != nullptr && work_->shared.damaged());
}

void RequestRun::Count() {
  const wire::Method kind = work_->operation->method();
  metrics::OperationMetrics& counts = backend_.metrics.operation(kind);
  counts.kernel_seconds.Observe(computing_);
  counts.bytes_in.Add(work_->operation->input_bytes());
  counts.bytes_out.Add(work_->operation->output_bytes());
  backend_.metrics.CountElements(kind, work_->operation->input_type(),
                                 work_->operation->output_type(), work_->operation->elements());
  if (timeline_ != nullptr) {
    timeline_->elements += work_->operation->elements();
    timeline_->bytes_in += static_cast<int64_t>(work_->operation->input_bytes());
    timeline_->bytes_out += static_cast<int64_t>(work_->operation->output_bytes());
    timeline_->input = work_->operation->input_type();
    timeline_->output = work_->operation->output_type();
  }
  if (work_->operation->response_layout().report_error) {
    backend_.metrics.saturated_elements().Add(response_->contents().error.saturated_elements);
  }
}

// The response as bytes, on the thread that computed it: values take longer than their kernel, and
// more memory.
absl::Status RequestRun::Encode() {
  const bool is_short =
      timeline_ == nullptr && response_->layout().encoding == wire::Encoding::kRaw;
  const Clock::time_point begin = is_short ? Clock::time_point() : WorkNow();
  const auto let_others = [this] { reservation_.LetOthers(); };
  piece_ = method_ == wire::Method::kStream ? std::move(*response_).FinishItem(rest_.id, let_others)
                                            : std::move(*response_).Finish(let_others);
  if (!is_short) {
    const Clock::duration took = WorkNow() - begin;
    backend_.metrics.CountComputing(1, took);
    if (timeline_ != nullptr) timeline_->Add(Phase::kEncode, took);
  }
  return piece_.begin == nullptr ? NoMemory() : absl::OkStatus();
}

void RequestRun::Compress() {
  const Clock::time_point begin = WorkNow();
  const wire::ResponseLayout& layout = response_->layout();
  const bool codes = layout.encoding == wire::Encoding::kRaw &&
                     Info(layout.y.data_type).kind != DataTypeKind::kFloat;
  compression_.Run(codes ? transport::Contents::kCodes : transport::Contents::kNumbers, piece_,
                   [this] { return Interrupted(); });
  const Clock::duration took = WorkNow() - begin;
  backend_.metrics.CountComputing(1, took);
  if (timeline_ != nullptr) timeline_->Add(Phase::kEncode, took);
}

memory::Piece RequestRun::EncodeItem(const absl::Status& status) {
  return status.ok() ? std::move(piece_) : wire::EncodeItemError(rest_.id, status, backend_.pool);
}

}  // namespace quantd::rpc
