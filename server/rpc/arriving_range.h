// The range of a DynamicQuantize's x, found while x arrives: in the cache that it is copied into,
// and in the time in which the loop's thread has nothing else to do for the call.
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

// A smaller message is read by the kernel, from a cache that holds it.
inline constexpr size_t kWatchedBytes = 2 << 20;

class ArrivingRange final : public transport::MessageWatcher {
 public:
  void OnMore(absl::Span<const uint8_t> so_far, size_t size) override;

  // What is known of x, which views `message`: nothing, unless it is the tensor that was watched.
  RangeSoFar Of(const TensorView& x, absl::Span<const uint8_t> message) const;
  // How long it took to find.
  loop::Clock::duration computing() const { return computing_; }

 private:
  bool searched_ = false;  // whether x_ is all that will be found
  std::optional<wire::ArrivingTensor> x_;
  RangeSoFar range_;
  loop::Clock::duration computing_{};
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_ARRIVING_RANGE_H_
