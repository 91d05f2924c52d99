// Limits the time that a connection's useless frames can take: pings, resets, settings, crumbs of
// data. Memory is limited elsewhere.
//
// Every such frame costs one credit; so do 4 KiB of header fields, 1 KiB of a header block, every
// head of a call and 16 KiB of anything. Every response, every end of a call and every 16 KiB of
// messages or of output earn some credit, and time adds the rest. A connection without credit is
// not read for a while. It loses nothing, because its frames wait in its own socket. So a client
// that cancels all day is served, and a flood only slows itself down.
#ifndef QUANTD_SERVER_TRANSPORT_FRAME_CREDIT_H_
#define QUANTD_SERVER_TRANSPORT_FRAME_CREDIT_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace quantd::transport {

class FrameCredit {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr double kMost = 4'000;
  static constexpr double kEachSecond = 10'000;  // for all connections without credit together
  static constexpr double kOfMessage = 4;
  static constexpr double kBytes = 16 << 10;      // earn one credit
  static constexpr double kFieldBytes = 4 << 10;  // of decoded header fields cost one
  static constexpr size_t kCrumb = 64;            // smaller DATA frames are counted

  explicit FrameCredit(Clock::time_point now) : at_(now) {}

  void Spend(double frames) { credit_ -= frames; }
  // Counts received bytes; those of messages are earned back.
  void SpendBytes(size_t bytes) { Spend(static_cast<double>(bytes) / kBytes); }
  // Counts the cost of header fields, their copies and checks, however few bytes they were sent as.
  void SpendFields(size_t bytes) { Spend(static_cast<double>(bytes) / kFieldBytes); }
  void EarnMessage() { Earn(kOfMessage); }
  void EarnBytes(size_t bytes) { Earn(static_cast<double>(bytes) / kBytes); }

  bool spent() const { return credit_ < 0; }
  // Adds the credit for the time, which `sharers` connections share.
  void Refill(Clock::time_point now, int64_t sharers) {
    const double seconds = std::chrono::duration<double>(now - at_).count();
    at_ = now;
    Earn(seconds * kEachSecond / static_cast<double>(std::max<int64_t>(sharers, 1)));
  }
  // The time until there is credit again.
  std::chrono::milliseconds Pause(int64_t sharers) const {
    const double rate = kEachSecond / static_cast<double>(std::max<int64_t>(sharers, 1));
    const double seconds = (kMost / 8 - credit_) / rate;
    return std::chrono::milliseconds(
        std::clamp<int64_t>(static_cast<int64_t>(seconds * 1e3), 5, 5'000));
  }

 private:
  void Earn(double frames) { credit_ = std::min(credit_ + frames, kMost); }

  double credit_ = kMost;
  Clock::time_point at_;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_FRAME_CREDIT_H_
