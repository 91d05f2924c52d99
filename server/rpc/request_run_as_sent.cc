// A response that is made while it is sent.
#include <algorithm>
#include <utility>

#include "quantd/shape.h"
#include "server/operations/operation.h"
#include "server/rpc/request_run.h"

namespace quantd::rpc {
namespace {

// The bytes of x or y, of the larger one, that are made at once: both fit the second-level cache.
constexpr uint64_t kSliceBytes = 256 << 10;
// The bytes of y in memory at a time: those under way, the part before them and the one after; a
// buffer may be larger by a quarter.
constexpr uint64_t kMostOfY = (transport::kMostMadeAhead + 2 * kSliceBytes) / 4 * 5;

constexpr uint64_t kLargeBytes = 2 << 20;  // of x and y
constexpr double kFastNanosecondsPerByte = 0.5;

int64_t SliceElements(const operations::Operation& operation) {
  const int bits = std::max(Info(operation.input_type()).bits, Info(operation.output_type()).bits);
  return static_cast<int64_t>(kSliceBytes) * 8 / bits / operations::kElementsStep *
         operations::kElementsStep;
}

// Whether the loop's thread can make such a response in slices.
bool IsFastAndLarge(const operations::Cost& cost) {
  return cost.bytes >= kLargeBytes && static_cast<double>(cost.time.count()) <=
                                          kFastNanosecondsPerByte * static_cast<double>(cost.bytes);
}

}  // namespace

// Not if it can fail after its first bytes are sent, or has values that are known only at the end.
// And not if others may want the request's memory while a slow reader takes the response.
bool RequestRun::IsMadeAsSent() const {
  if (method_ == wire::Method::kStream || work_ == nullptr) return false;
  return operations::HasElements(work_->request) && backend_.admission.has_plenty() &&
         work_->request.shared.empty() && !work_->request.output.has_value() &&
         work_->request.output_encoding == wire::Encoding::kRaw &&
         compression_.time().count() == 0 && IsFastAndLarge(cost_);
}

// The part of its response's memory that is not needed, because y is never complete in memory.
uint64_t RequestRun::SavedBytes() const {
  if (!made_as_sent_) return 0;
  const wire::ResponseLayout& layout = work_->operation->response_layout();
  const uint64_t all = wire::ResponseMemoryBytes(layout);
  const uint64_t needed = kMostOfY + wire::MaxEncodedBytes(layout) - layout.y.bytes;
  return all > needed ? all - needed : 0;
}

void RequestRun::Write(loop::Event& written) {
  if (!made_as_sent_) return stream_.Write(std::move(piece_), written, compression_.done());
  const size_t size = piece_.size + response_->layout().y.bytes;
  uint8_t* const y = response_->contents().y.data();
  behind_y_ = absl::MakeSpan(y, piece_.begin + piece_.size);
  piece_.size -= behind_y_.size();
  reservation_.permit().Computed();  // the client decides how long the rest takes
  stream_.WriteAsMade(std::move(piece_), size, *this, written);
}

memory::Piece RequestRun::MakeMore() {
  const Clock::time_point begin = Clock::now();
  const int64_t all = work_->operation->elements();
  const DataType type = work_->operation->output_type();
  const int64_t end = std::min(all, made_elements_ + SliceElements(*work_->operation));
  const size_t y_bytes = ByteSize(type, end) - ByteSize(type, made_elements_);
  const absl::Span<const uint8_t> behind = end == all ? behind_y_ : absl::Span<uint8_t>();
  const size_t size = y_bytes + behind.size();
  memory::Piece part{backend_.pool.Allocate(size), nullptr, size};
  part.begin = part.buffer.data();
  const absl::Status status = part.begin == nullptr ? NoMemory() : CatchOutOfMemory([&] {
    return work_->operation->ExecuteElements(made_elements_, end, backend_.executors.of(1),
                                             {part.begin, y_bytes});
  });
  if (!status.ok()) {
    stream_.Interrupt(status);
    return {};
  }
  std::ranges::copy(behind, part.begin + y_bytes);
  made_elements_ = end;
  const Clock::duration took = Clock::now() - begin;
  computing_ += took;
  backend_.metrics.CountComputing(1, took);
  if (end == all) {
    EndKernel();
    Computed(status);
  }
  return part;
}

}  // namespace quantd::rpc
