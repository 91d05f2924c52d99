#include "server/rpc/arriving_range.h"

#include <algorithm>

#include "quantd/shape.h"

namespace quantd::rpc {
namespace {

// Elements that are searched together, unless they are the last. Few enough to be still in the
// cache.
constexpr int64_t kStep = 16 << 10;

bool IsWatched(const wire::ArrivingTensor& x) {
  return Info(x.data_type).kind == DataTypeKind::kFloat && x.bytes >= kWatchedBytes / 2;
}

}  // namespace

void ArrivingRange::OnMore(absl::Span<const uint8_t> so_far, size_t size) {
  if (size < kWatchedBytes) return;
  if (!searched_) {
    x_ = wire::FindArrivingX(so_far.first(std::min(so_far.size(), kWatchedHead)));
    searched_ = x_.has_value() || so_far.size() >= kWatchedHead;
  }
  if (!x_.has_value() || !IsWatched(*x_)) return;
  const uint64_t bytes = std::min<uint64_t>(so_far.size() - x_->begin, x_->bytes);
  const auto elements = static_cast<int64_t>(bytes * 8 / Info(x_->data_type).bits);
  if (elements - range_.elements < kStep && bytes < x_->bytes) return;
  const loop::Clock::time_point begin = loop::Clock::now();
  WidenRange(x_->data_type, so_far.subspan(x_->begin), elements, range_);
  computing_ += loop::Clock::now() - begin;
}

RangeSoFar ArrivingRange::Of(const TensorView& x, absl::Span<const uint8_t> message) const {
  const bool same = x_.has_value() && x.data_type == x_->data_type &&
                    x.bytes.data() == message.data() + x_->begin && x.bytes.size() == x_->bytes;
  return same ? range_ : RangeSoFar{};
}

}  // namespace quantd::rpc
