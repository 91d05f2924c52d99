#include "server/rpc/request_ends.h"

#include <tuple>

#include "absl/hash/hash.h"

namespace quantd::rpc {

size_t RequestEnds::IndexOf(uint64_t peer, size_t size) {
  return absl::HashOf(peer, size) % std::tuple_size_v<decltype(kinds_)>;
}

std::optional<std::string> RequestEnds::Expected(uint64_t peer, size_t size,
                                                 size_t end_size) const {
  const std::lock_guard lock(mutex_);
  const Kind& kind = kinds_[IndexOf(peer, size)];
  const bool fits = kind.repeats && kind.peer == peer && kind.size == size;
  if (!fits || kind.end.size() != end_size) return std::nullopt;
  return kind.end;
}

void RequestEnds::Learn(uint64_t peer, size_t size, absl::string_view end) {
  if (end.size() > kMostBytes) return;
  const std::lock_guard lock(mutex_);
  Kind& kind = kinds_[IndexOf(peer, size)];
  kind.repeats = kind.peer == peer && kind.size == size && kind.end == end;
  if (kind.repeats) return;
  kind.end = std::string(end);
  kind.peer = peer;
  kind.size = size;
}

}  // namespace quantd::rpc
