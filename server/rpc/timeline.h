// Where the time of a call went, for the trailer quantd-timing-us and for spans.
//
//   decode  reading the message's fields
//   queue   from the arrival of the call or item to the start of its kernel, without decode:
//           receiving the rest of the message, and waiting for memory and a core
//   kernel  computing the response
//   encode  writing the fields around it
//
// For a stream: the sums over its items.
#ifndef QUANTD_SERVER_RPC_TIMELINE_H_
#define QUANTD_SERVER_RPC_TIMELINE_H_

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "quantd/data_type.h"
#include "server/loop/timers.h"

namespace quantd::rpc {

enum class Phase : uint8_t { kDecode, kQueue, kKernel, kEncode };

class Timeline {
 public:
  using Clock = loop::Clock;

  void Add(Phase phase, Clock::duration time) {
    const auto index = static_cast<size_t>(phase);
    times_[index] += std::max(time, Clock::duration::zero());
    reached_[index] = true;
  }
  // "decode=12,queue=3,kernel=40,encode=2", in microseconds: the phases that were reached.
  std::string Text() const {
    constexpr absl::string_view kNames[] = {"decode=", "queue=", "kernel=", "encode="};
    std::string text;
    for (size_t i = 0; i < times_.size(); ++i) {
      if (!reached_[i]) continue;
      const auto time = std::chrono::duration_cast<std::chrono::microseconds>(times_[i]);
      absl::StrAppend(&text, text.empty() ? "" : ",", kNames[i], time.count());
    }
    return text;
  }

  // For spans. In a stream the times are those of its last item, and the counts are sums.
  Clock::time_point decoded, kernel_began, kernel_ended;  // 0: not reached
  int64_t elements = 0;
  int64_t bytes_in = 0;
  int64_t bytes_out = 0;
  DataType input = {};
  DataType output = {};

 private:
  std::array<Clock::duration, 4> times_ = {};
  std::array<bool, 4> reached_ = {};
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_TIMELINE_H_
