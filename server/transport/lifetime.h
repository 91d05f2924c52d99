// When a connection is asked whether it is alive, when it ends, and in which steps. A state machine
// without a socket: it is told what happens, and says what to do next.
//
// A drain loses no call: the client is told to make no more calls here, and gets a ping behind
// that. Once it has answered, it knows, but calls that it made before may be under way; they are
// answered. When no call is left, another ping makes sure that none is under way. Then the second
// GOAWAY names the last call that was answered, and the connection ends.
#ifndef QUANTD_SERVER_TRANSPORT_LIFETIME_H_
#define QUANTD_SERVER_TRANSPORT_LIFETIME_H_

#include <cstddef>
#include <cstdint>

#include "server/loop/timers.h"
#include "server/transport/transport_context.h"

namespace quantd::transport {

class Lifetime {
 public:
  using Time = loop::Clock::time_point;

  enum class Do : uint8_t {
    kNothing,
    kPing,
    kAnnounce,  // say that the connection will end, then ping
    kGoAway,    // say that it ends
    kClose,
    kEnd,  // close it, because of `why`
  };
  struct Step {
    Do what = Do::kNothing;
    ConnectionEnd why = ConnectionEnd::kAge;
  };

  Lifetime(const Limits& limits, Time now)
      : limits_(limits), opened_at_(now), heard_at_(now), moved_at_(now) {}

  // The peer has sent something.
  void Heard(Time now) {
    heard_at_ = now;
    pinged_ = false;
  }
  // HTTP/2 has begun: the peer's first SETTINGS have arrived.
  void Spoke() { spoke_ = true; }
  bool spoke() const { return spoke_; }
  // Bytes were written, or there was nothing to write.
  void Wrote(Time now) { moved_at_ = now; }

  // The connection shall end.
  Step Leave(Time now);
  // The peer has answered a ping; so many calls are open.
  Step OnPong(size_t calls, Time now);
  // The last call has ended.
  Step OnNoCall(Time now);
  // Whether the last GOAWAY was sent.
  bool left() const { return leaving_ == Leaving::kFinal; }

  // Everything is sent. If the connection were closed now with unread input, the kernel would
  // discard what the peer has not read yet. So only this direction is closed; the peer closes the
  // other one.
  void Linger(Time now) {
    lingers_ = true;
    leave_at_ = now;
  }
  bool lingers() const { return lingers_; }

  struct Facts {
    size_t calls = 0;
    bool handshaking = false;   // of TLS
    bool throttled = false;     // it is not read
    bool blocked = false;       // the socket takes nothing
    bool anyone_waits = false;  // for what peers hold by not reading
  };
  // Called a few times a second.
  Step Look(Time now, const Facts& facts);

 private:
  enum class Leaving : uint8_t {
    kNo,
    kAnnounced,  // the client knows it once it has answered a ping
    kKnown,      // the client knows, and finishes its calls
    kAsked,      // no call is left; a last ping, in case one is under way
    kFinal,
  };
  Step GoAway() {
    leaving_ = Leaving::kFinal;
    return {Do::kGoAway};
  }

  const Limits& limits_;
  const Time opened_at_;
  Time heard_at_;
  Time moved_at_;
  Time pinged_at_;
  Time leave_at_;  // when the current step of leaving, or of lingering, began
  Leaving leaving_ = Leaving::kNo;
  bool spoke_ = false;
  bool pinged_ = false;
  bool lingers_ = false;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_LIFETIME_H_
