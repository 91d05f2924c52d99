// Finds the range of a DynamicQuantize's x while x arrives: the bytes are still in the cache, and
// the loop's thread has nothing else to do for the call.
#ifndef QUANTD_SERVER_RPC_ARRIVING_RANGE_H_
#define QUANTD_SERVER_RPC_ARRIVING_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/parameters.h"
#include "server/loop/loop.h"
#include "server/transport/server_call.h"
#include "server/wire/arriving.h"

namespace quantd::rpc {

// In a smaller message the kernel finds the range, because its bytes are still in a cache then.
inline constexpr size_t kWatchedBytes = 2 << 20;
// x must begin within this number of bytes, or it is not found: otherwise a client that puts a
// million fields before x and sends them in crumbs would have them read again for each crumb.
inline constexpr size_t kWatchedHead = 4 << 10;

class ArrivingRange final : public transport::MessageWatcher {
 public:
  void OnMore(absl::Span<const uint8_t> so_far, size_t size) override;

  // The range of x found so far. x views `message`; nothing if it is not the tensor that was
  // watched.
  RangeSoFar Of(const TensorView& x, absl::Span<const uint8_t> message) const;
  // The time that the search has taken.
  loop::Clock::duration computing() const { return computing_; }

 private:
  bool searched_ = false;  // whether x_ is final
  std::optional<wire::ArrivingTensor> x_;
  RangeSoFar range_;
  loop::Clock::duration computing_{};
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_ARRIVING_RANGE_H_
