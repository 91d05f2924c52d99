// Keeps a connection's frames in relation to what is done for it. Memory is bounded elsewhere; this
// bounds the time that frames without use take: pings, resets, settings, crumbs of data.
//
// Every such frame costs one, and so do 4 KiB of header fields, 1 KiB of a header block, every head
// of a call and 16 KiB of anything; every response, every end of a call and every 16 KiB that pass
// earn some, and time gives the rest. Who has spent everything is not read from for a while, and
// loses nothing: its frames wait in its own socket. So a client that cancels all day is served, and
// a flood only slows itself down.
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
  static constexpr double kEachSecond = 10'000;  // of all connections that have spent theirs
  static constexpr double kOfMessage = 4;
  static constexpr double kBytes = 16 << 10;      // earn one
  static constexpr double kFieldBytes = 4 << 10;  // of decoded header fields, cost one
  static constexpr size_t kCrumb = 64;            // DATA frames below this are counted

  explicit FrameCredit(Clock::time_point now) : at_(now) {}

  void Spend(double frames) { credit_ -= frames; }
  // Bytes that came: those of messages are earned back.
  void SpendBytes(size_t bytes) { Spend(static_cast<double>(bytes) / kBytes); }
  // What header fields cost: their copies and checks, whatever few bytes they were sent as.
  void SpendFields(size_t bytes) { Spend(static_cast<double>(bytes) / kFieldBytes); }
  void EarnMessage() { Earn(kOfMessage); }
  void EarnBytes(size_t bytes) { Earn(static_cast<double>(bytes) / kBytes); }

  bool spent() const { return credit_ < 0; }
  // Adds what time gives, shared by `sharers` connections.
  void Refill(Clock::time_point now, int64_t sharers) {
    const double seconds = std::chrono::duration<double>(now - at_).count();
    at_ = now;
    Earn(seconds * kEachSecond / static_cast<double>(std::max<int64_t>(sharers, 1)));
  }
  // How long until some is there again.
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
