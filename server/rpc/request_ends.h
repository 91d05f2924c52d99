// How recent large requests ended: what followed the elements of x, such as scale and zero point.
#ifndef QUANTD_SERVER_RPC_REQUEST_ENDS_H_
#define QUANTD_SERVER_RPC_REQUEST_ENDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace quantd::rpc {

// Requests of one peer that are equally large are likely to have the same scales. Thread-safe.
class RequestEnds {
 public:
  // Longer ends are not kept.
  static constexpr size_t kMostBytes = 4 << 10;

  // The last `end_size` bytes that a request of `size` bytes is likely to have: those of the last
  // two such requests that were learned, if they were equal.
  std::optional<std::string> Expected(uint64_t peer, size_t size, size_t end_size) const;
  void Learn(uint64_t peer, size_t size, absl::string_view end);

 private:
  struct Kind {
    uint64_t peer = 0;
    size_t size = 0;
    std::string end;
    bool repeats = false;  // whether the request before ended in the same way
  };
  static size_t IndexOf(uint64_t peer, size_t size);

  mutable std::mutex mutex_;
  std::array<Kind, 64> kinds_;  // a new kind replaces an old one
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_REQUEST_ENDS_H_
