// Computes y of a Quantize while x arrives: the bytes are still in the cache, and the loop's thread
// has nothing else to do for the call.
//
// That needs the fields after x. If there are none, the request is known. Otherwise it is assumed
// to end like the last two of its peer and size (request_ends.h), and what was computed counts only
// if it does.
#ifndef QUANTD_SERVER_RPC_ARRIVING_CODES_H_
#define QUANTD_SERVER_RPC_ARRIVING_CODES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/loop/loop.h"
#include "server/memory/buffer.h"
#include "server/operations/costs.h"
#include "server/operations/operation.h"
#include "server/rpc/backend.h"
#include "server/transport/server_call.h"
#include "server/wire/arriving.h"

namespace quantd::rpc {

// The bytes of x or y, of the larger one, that are made at once: both fit the second-level cache.
inline constexpr uint64_t kSliceBytes = 256 << 10;
// The same in elements.
int64_t SliceElements(const operations::Operation& operation);
// Whether a response of this kind can be made in slices by the loop's thread: it is large and the
// kernel is fast.
bool IsFastAndLarge(const operations::CostKind& cost, std::chrono::nanoseconds estimate);

class ArrivingCodes final : public transport::MessageWatcher {
 public:
  ArrivingCodes(Backend& backend, transport::ServerCall& stream);
  ~ArrivingCodes();
  ArrivingCodes(const ArrivingCodes&) = delete;
  ArrivingCodes& operator=(const ArrivingCodes&) = delete;

  void OnMore(absl::Span<const uint8_t> so_far, size_t size) override;
  void OnSlow() override { Drop(); }
  // The message has arrived.
  void OnWhole(absl::Span<const uint8_t> message);
  // y[begin, end), which is as much as is together in memory; an empty piece if it was not
  // computed. REQUIRES: `begin` is 0 or the last call's `end`.
  memory::Piece Take(int64_t begin, int64_t& end);
  // The request's permit covers what was computed, from now on.
  void Admitted();
  // Whether something was computed.
  bool any() const;
  // Frees all memory. What was computed is lost.
  void Drop();
  // The time that was spent on what can be taken; metrics have it already.
  loop::Clock::duration computing() const;

 private:
  struct Early;
  absl::Status Begin(absl::Span<const uint8_t> so_far, size_t size);
  absl::Status Plan(absl::Span<const uint8_t> so_far);
  absl::Status Compute(absl::Span<const uint8_t> so_far);

  Backend& backend_;
  transport::ServerCall& stream_;
  bool searched_ = false;  // whether x_ is final
  std::optional<wire::ArrivingTensor> x_;
  std::unique_ptr<Early> early_;
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_ARRIVING_CODES_H_
