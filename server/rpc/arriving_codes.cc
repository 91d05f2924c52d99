#include "server/rpc/arriving_codes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "quantd/shape.h"
#include "server/operations/memory.h"
#include "server/rpc/arriving_range.h"
#include "server/rpc/reservation.h"

namespace quantd::rpc {
namespace {

constexpr uint64_t kLargeBytes = 2 << 20;  // of x and y
constexpr double kFastNanosecondsPerByte = 0.25;

// The elements of y that are kept and sent together.
int64_t PartElements(const operations::Operation& operation) {
  const int64_t slice = SliceElements(operation);
  const uint64_t slices = kSliceBytes / ByteSize(operation.output_type(), slice);
  return slice * static_cast<int64_t>(slices);
}

uint64_t BytesOf(const operations::Operation& operation, int64_t elements) {
  return memory::Pool::Footprint(ByteSize(operation.output_type(), elements));
}

// The memory of all parts.
uint64_t AllBytes(const operations::Operation& operation) {
  const int64_t part = PartElements(operation);
  return static_cast<uint64_t>(operation.elements() / part) * BytesOf(operation, part) +
         BytesOf(operation, operation.elements() % part);
}

}  // namespace

int64_t SliceElements(const operations::Operation& operation) {
  const int bits = std::max(Info(operation.input_type()).bits, Info(operation.output_type()).bits);
  return static_cast<int64_t>(kSliceBytes) * 8 / bits / operations::kElementsStep *
         operations::kElementsStep;
}

bool IsFastAndLarge(const operations::CostKind& cost, std::chrono::nanoseconds estimate) {
  return cost.bytes >= kLargeBytes && static_cast<double>(estimate.count()) <=
                                          kFastNanosecondsPerByte * static_cast<double>(cost.bytes);
}

struct ArrivingCodes::Early {
  admission::Permit permit;  // for the parts, until the request has its own
  std::string end;           // the assumed bytes behind x
  // What is planned: the request without elements, and with those that are arriving.
  std::string message;
  std::optional<wire::Request> request;
  std::optional<operations::Operation> operation;
  const uint8_t* arriving = nullptr;  // where the message arrives
  // The codes of the first `elements`, in parts of several slices.
  std::vector<memory::Buffer> parts;
  int64_t elements = 0;
  loop::Clock::duration computing{};
};

ArrivingCodes::ArrivingCodes(Backend& backend, transport::ServerCall& stream)
    : backend_(backend), stream_(stream) {}
ArrivingCodes::~ArrivingCodes() = default;
void ArrivingCodes::Drop() { early_.reset(); }

void ArrivingCodes::Admitted() {
  if (early_ != nullptr) early_->permit.Release();
}

bool ArrivingCodes::any() const { return early_ != nullptr && early_->elements > 0; }

loop::Clock::duration ArrivingCodes::computing() const {
  return early_ == nullptr ? loop::Clock::duration() : early_->computing;
}

void ArrivingCodes::OnMore(absl::Span<const uint8_t> so_far, size_t size) {
  if (size < kWatchedBytes) return;
  if (!searched_) {
    x_ = wire::FindArrivingX(so_far.first(std::min(so_far.size(), kWatchedHead)));
    searched_ = x_.has_value() || so_far.size() >= kWatchedHead;
    if (x_.has_value() && (!x_->is_last || x_->end() > size)) x_.reset();
    if (x_.has_value() && !CatchOutOfMemory([&] { return Begin(so_far, size); }).ok()) Drop();
  }
  if (early_ != nullptr && !CatchOutOfMemory([&] { return Compute(so_far); }).ok()) Drop();
}

// Fails if the request cannot be computed before it is complete.
absl::Status ArrivingCodes::Begin(absl::Span<const uint8_t> so_far, size_t size) {
  const absl::Status no = absl::UnavailableError("");
  const size_t end_size = size - x_->end();
  if (stream_.out_encoding() != transport::Encoding::kIdentity) return no;
  std::optional<std::string> end = std::string();
  if (end_size != 0) end = backend_.request_ends.Expected(stream_.peer(), size, end_size);
  if (!end.has_value()) return no;
  early_ = std::make_unique<Early>();
  early_->end = *std::move(end);
  early_->message = wire::WithoutElements(so_far, *x_, early_->end);
  absl::StatusOr<wire::Request> request = wire::DecodeWithoutElements(*x_, early_->message);
  if (!request.ok()) return request.status();
  early_->request = *std::move(request);
  if (!operations::HasElements(*early_->request)) return no;
  absl::Status planned = Plan(so_far);
  if (!planned.ok()) return planned;
  const operations::CostKind cost = operations::KindOf(*early_->request);
  const bool worthwhile = IsFastAndLarge(cost, backend_.costs.Estimate(cost)) &&
                          backend_.admission.TakeSpare(
                              AllBytes(*early_->operation),
                              size + operations::MemoryBound(*early_->request), early_->permit);
  return worthwhile ? absl::OkStatus() : no;
}

absl::Status ArrivingCodes::Plan(absl::Span<const uint8_t> so_far) {
  early_->arriving = so_far.data();
  wire::TensorOf(*early_->request, wire::TensorField::kX).bytes = {so_far.data() + x_->begin,
                                                                   x_->bytes};
  absl::StatusOr<operations::Operation> operation = operations::Plan(*early_->request);
  if (!operation.ok()) return operation.status();
  early_->operation = *std::move(operation);
  return absl::OkStatus();
}

// Computes the slices whose x has arrived, but never the last one, behind which the response goes
// on. Fails if others wait for the memory.
absl::Status ArrivingCodes::Compute(absl::Span<const uint8_t> so_far) {
  if (so_far.data() != early_->arriving) {
    if (absl::Status planned = Plan(so_far); !planned.ok()) return planned;
  }
  const operations::Operation& operation = *early_->operation;
  const uint64_t bytes = std::min<uint64_t>(so_far.size() - x_->begin, x_->bytes);
  const auto arrived = static_cast<int64_t>(bytes * 8 / Info(x_->data_type).bits);
  const int64_t slice = SliceElements(operation);
  const uint64_t slice_bytes = ByteSize(operation.output_type(), slice);
  const int64_t part = PartElements(operation);
  int64_t& done = early_->elements;
  const int64_t end = std::min(arrived, operation.elements() - 1);
  if (done + slice > end) return absl::OkStatus();
  if (backend_.admission.anyone_waits()) return absl::UnavailableError("others wait");
  const loop::Clock::time_point begin = loop::Clock::now();
  for (; done + slice <= end; done += slice) {
    if (done % part == 0) {
      const int64_t elements = std::min(part, operation.elements() - done);
      early_->parts.push_back(backend_.pool.Allocate(ByteSize(operation.output_type(), elements)));
    }
    uint8_t* const y = early_->parts.back().data();
    if (y == nullptr) return NoMemory();
    absl::Status computed = operation.ExecuteElements(
        done, done + slice, backend_.executors.of(1),
        {y + ByteSize(operation.output_type(), done % part), slice_bytes});
    if (!computed.ok()) return computed;
  }
  const loop::Clock::duration took = loop::Clock::now() - begin;
  early_->computing += took;
  backend_.metrics.CountComputing(1, took);
  return absl::OkStatus();
}

void ArrivingCodes::OnWhole(absl::Span<const uint8_t> message) {
  if (!x_.has_value()) return;
  const absl::string_view end(reinterpret_cast<const char*>(message.data()) + x_->end(),
                              message.size() - x_->end());
  if (early_ != nullptr && early_->end != end) Drop();
  if (!end.empty()) backend_.request_ends.Learn(stream_.peer(), message.size(), end);
}

memory::Piece ArrivingCodes::Take(int64_t begin, int64_t& end) {
  if (early_ == nullptr || begin >= early_->elements) return {};
  const int64_t part = PartElements(*early_->operation);
  end = std::min(begin + part, early_->elements);
  memory::Piece piece{std::move(early_->parts[static_cast<size_t>(begin / part)]), nullptr,
                      ByteSize(early_->operation->output_type(), end - begin)};
  piece.begin = piece.buffer.data();
  return piece;
}

}  // namespace quantd::rpc
