// How much memory the process may use, and how it is divided; deploy/OPERATIONS.md describes it
// with its figures.
#ifndef QUANTD_SERVER_MEMORY_SHARES_H_
#define QUANTD_SERVER_MEMORY_SHARES_H_

#include <algorithm>
#include <cstdint>
#include <string>

namespace quantd::memory {

// The lowest memory limit of the process's cgroup and its ancestors (versions 2 and 1); 0 if there
// is none. `root` is prefixed to /proc and /sys, for tests.
uint64_t CgroupLimitBytes(const std::string& root);

// The container's limit, but at most the machine's memory. Without a container, half of the
// machine's memory, because the machine has other work to do.
uint64_t LimitBytes();

struct Shares {
  uint64_t limit = 0;         // of the container, or the value that is used instead
  uint64_t idle = 0;          // the process itself, connections and calls at their most, slack
  uint64_t requests = 0;      // requests with permits: their messages, responses and scratch
  uint64_t receiving = 0;     // messages that are being received
  uint64_t region_holes = 0;  // pages of shared memory that the server touches first
  uint64_t window = 0;        // what a stream may send unasked
  uint64_t max_message = 0;   // the largest message that is accepted
  bool limited_by_receiving = false;  // max_message is smaller than what was wanted
  // The most that the process uses: below the limit, unless flags say otherwise.
  uint64_t most() const { return idle + requests + receiving + region_holes; }
};

// The measured maximum of each, hostile peers included (tests/e2e/test_memory.py).
inline constexpr uint64_t kProcessBytes = 24 << 20;
inline constexpr uint64_t kThreadBytes = 192 << 10;
inline constexpr uint64_t kConnectionBytes = 28 << 10;
// The part of this, on average, for what connections cause and do not read:
// transport/flow_control.h.
inline constexpr uint64_t kBacklogBytes = 8 << 10;
// The additional maximum with TLS: during a handshake, or with half a record in either direction.
inline constexpr uint64_t kTlsConnectionBytes = 64 << 10;
// The connections of the HTTP port with TLS.
inline constexpr uint64_t kTlsHttpConnections = 64;
inline constexpr uint64_t kCallBytes = 10 << 10;
// Two first windows: one for a message that continues, one for what comes unasked.
inline constexpr uint64_t kLeastReceiving = 128 << 10;

struct Wanted {
  uint64_t requests = 0;   // --memory_budget_bytes; 0: decide here
  uint64_t receiving = 0;  // --receive_budget_bytes; 0: decide here; at least kLeastReceiving
  uint64_t max_message = 0;
  uint64_t connections = 0;
  uint64_t calls = 0;
  uint64_t threads = 0;
  bool tls = false;            // --tls_cert is given
  bool shared_memory = false;  // --shared_memory_dir is given
};

// A pure function.
constexpr Shares Divide(uint64_t limit, const Wanted& wanted) {
  constexpr uint64_t kLeast = 4 << 20;  // even if no memory is left: one small request at a time
  Shares shares;
  shares.limit = limit;
  // A sixteenth for what allocators lose between the pieces.
  shares.idle =
      kProcessBytes + wanted.threads * kThreadBytes + wanted.connections * kConnectionBytes +
      (wanted.tls ? (wanted.connections + kTlsHttpConnections) * kTlsConnectionBytes : 0) +
      wanted.calls * kCallBytes + limit / 16;
  uint64_t left = limit > shares.idle ? limit - shares.idle : 0;
  if (wanted.shared_memory) shares.region_holes = left / 4;
  left -= shares.region_holes;
  // A request also needs room for its response.
  shares.requests = wanted.requests != 0 ? wanted.requests : std::max(left / 16 * 9, kLeast);
  const uint64_t rest = left > shares.requests ? left - shares.requests : 0;
  shares.receiving = std::max(rest, kLeast);
  if (wanted.requests != 0) {
    // A user who sets the memory for requests means all memory that they use: the same for those
    // that are being received, and room for the largest one.
    const uint64_t largest =
        std::min(wanted.requests, wanted.max_message / 7 * 8) + kLeast + wanted.requests / 4;
    shares.receiving = std::max(std::min(shares.receiving, wanted.requests), largest);
  }
  if (wanted.receiving != 0) shares.receiving = std::max(wanted.receiving, kLeastReceiving);
  // From 64 KiB, HTTP/2's initial window, to 256 KiB; with much memory 1 MiB, and room for what
  // stands around a tensor of that size. A client that has to wait for more window loses a sixth of
  // its rate then (`quantd_bench table --filter="Quantize tcp 1 MiB x 1"`, with CUBIC). Waiting
  // uploads keep their windows: with 1 MiB there is room for about five hundred of them.
  shares.window = 64 << 10;
  while (shares.window < 256 << 10 && shares.window * 4096 < shares.receiving) shares.window *= 2;
  if (shares.window == 256 << 10 && shares.receiving > uint64_t{4} << 30) {
    shares.window = (1 << 20) + (64 << 10);
  }
  // An eighth is for first windows, but room for at least one.
  const uint64_t first = std::max(shares.receiving / 8, shares.window);
  shares.max_message = std::min(wanted.max_message, shares.receiving - first);
  shares.limited_by_receiving = shares.max_message < wanted.max_message;
  return shares;
}

}  // namespace quantd::memory

#endif  // QUANTD_SERVER_MEMORY_SHARES_H_
